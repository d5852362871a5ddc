"""Render a comparison: words, Markdown, HTML, JSON, JUnit XML."""
