"""Sessions of agents: import them, list them, export them, check them."""
