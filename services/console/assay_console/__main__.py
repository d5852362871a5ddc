"""Run the console service: `python -m assay_console`."""

from assay_console.app import run

if __name__ == "__main__":
    run()
