"""Run the writer service: `python -m assay_writer`."""

from assay_writer.app import run

if __name__ == "__main__":
    run()
