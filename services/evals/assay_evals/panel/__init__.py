"""Panels of judges of different families: answers of a file, scores, verdicts, agreement."""
