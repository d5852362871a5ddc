"""Run the assembler service: `python -m assay_assembler`."""

from assay_assembler.app import run

if __name__ == "__main__":
    run()
