"""Golden datasets, metrics, statistics, replay, comparison and gates."""
