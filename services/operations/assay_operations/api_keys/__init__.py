"""Keys of HTTP clients: create, list, revoke and rotate."""
