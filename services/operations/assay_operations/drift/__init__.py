"""What the drift service watches, and why it raised an alert."""
