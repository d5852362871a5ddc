"""Run the auditor service: `python -m assay_auditor`."""

from assay_auditor.app import run

if __name__ == "__main__":
    run()
