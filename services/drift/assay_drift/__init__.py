"""Detect drops in quality and publish one alert episode for each."""
