"""Take events over HTTP: authenticate, bound, decode, validate, append to the capture stream."""
