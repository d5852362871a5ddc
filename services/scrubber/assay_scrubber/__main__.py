"""`python -m assay_scrubber`: run the scrubber service."""

from .app import run

if __name__ == "__main__":
    run()
