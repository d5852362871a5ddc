"""Run the judge service: `python -m assay_judge`."""

from assay_judge.app import run

if __name__ == "__main__":
    run()
