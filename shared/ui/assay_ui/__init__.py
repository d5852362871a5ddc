"""Stylesheet, components and charts of the console, of reports and of pictures."""
