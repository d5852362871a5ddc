"""`python -m assay_writer`: run the writer service."""

from assay_writer.app import run

if __name__ == "__main__":
    run()
