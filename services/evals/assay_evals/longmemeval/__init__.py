"""LongMemEval, a benchmark of chat memory: files, metrics, judging, comparison of runs."""
