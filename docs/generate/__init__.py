"""What is made from the code: JSON Schemas, AsyncAPI documents, reference pages, the schema for a cluster. Never installed.

Run from the root of a checkout; `make docs` runs all of them.
"""
