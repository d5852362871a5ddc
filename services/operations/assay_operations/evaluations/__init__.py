"""Golden datasets, runs, gates and replays."""
