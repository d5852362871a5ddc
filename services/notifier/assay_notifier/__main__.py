"""`python -m assay_notifier`: run the notifier service."""

from .app import run

if __name__ == "__main__":
    run()
