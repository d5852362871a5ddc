"""What nobody may do, tried in every way: tests that a change of rights has to pass."""
