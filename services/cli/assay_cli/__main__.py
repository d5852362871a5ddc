"""`python -m assay_cli`: the same as `assay`."""

from assay_cli.main import app

if __name__ == "__main__":
    app(prog_name="assay")
