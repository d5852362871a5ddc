"""`python -m assay_drift`: run the drift service."""

from assay_drift.app import run

if __name__ == "__main__":
    run()
