"""Golden datasets from traffic: candidates for review, reviewed cases in the store, export."""
