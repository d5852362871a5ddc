"""Score a sample of the answers within a fixed budget."""
