"""Replay captured queries, and gate a target on baselines and relevance judgements."""
