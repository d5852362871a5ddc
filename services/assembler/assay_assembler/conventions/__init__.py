"""One module for each convention of attributes. Each maps a span that has its marks, or returns None."""
