"""Run the notifier service: `python -m assay_notifier`."""

from .app import run

if __name__ == "__main__":
    run()
