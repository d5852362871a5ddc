"""The chaos suite: break everything under load, then count what arrived."""
