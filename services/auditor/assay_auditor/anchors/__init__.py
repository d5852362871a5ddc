"""Anchor signed checkpoints outside of the store, where its operator cannot take them back."""
