"""Is the system well, and if not, what mends it."""
