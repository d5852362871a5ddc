"""Run the scrubber service: `python -m assay_scrubber`."""

from .app import run

if __name__ == "__main__":
    run()
