"""SQL files of the migrations; `assay_runtime.migrate` runs them."""
