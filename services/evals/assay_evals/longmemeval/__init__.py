"""LongMemEval, a benchmark of long-term chat memory: its files, its metrics, its judging, and comparisons of runs."""
