"""Run the gateway service: `python -m assay_gateway`."""

from assay_gateway.app import run

if __name__ == "__main__":
    run()
