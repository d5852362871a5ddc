"""The producers' SDK: captures events without ever slowing or breaking the caller."""
