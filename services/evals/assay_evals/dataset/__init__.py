"""Golden datasets, captured rows and relevance judgements: models, files, and where cases come from."""
