"""Run the drift service: `python -m assay_drift`."""

from assay_drift.app import run

if __name__ == "__main__":
    run()
