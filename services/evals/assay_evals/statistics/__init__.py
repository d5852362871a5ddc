"""Statistics of paired and bounded values: resampling, intervals, significance, sample size."""
