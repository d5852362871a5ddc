"""How secrets are announced, one module for each way; the family `secret` is made of them."""
