"""Metrics of one response: retrieval, answers, scorers."""
