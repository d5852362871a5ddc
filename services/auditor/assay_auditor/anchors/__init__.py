"""Anchors: places outside of the store that get each signed checkpoint, so that nobody can take it back."""
