"""The ways in which secrets are announced, one module each; the family `secret` is made of them."""
