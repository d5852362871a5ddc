"""Show what is stored, monitored and evaluated: web pages, and the same documents as JSON."""
