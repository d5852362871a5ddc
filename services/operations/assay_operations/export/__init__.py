"""Export captured events from the store."""
