"""Health checks, each with a fix."""
