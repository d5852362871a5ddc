"""The documents of the pages, one module for each group of pages."""
