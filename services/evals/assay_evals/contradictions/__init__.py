"""Contradictions between retrieved documents: how often they occur."""
