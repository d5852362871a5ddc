"""Scores a sample of the answers, at a cost that cannot run away."""
