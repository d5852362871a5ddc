"""Notices when quality drops, and says so once."""
