"""Rules for the family `secret`, one module for each way in which secrets appear."""
