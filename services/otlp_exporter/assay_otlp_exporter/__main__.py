"""Run the OTLP exporter service: `python -m assay_otlp_exporter`."""

from assay_otlp_exporter.app import run

if __name__ == "__main__":
    run()
