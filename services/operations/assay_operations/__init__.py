"""What people and programs ask of the system: typed in, typed out, nothing printed."""
