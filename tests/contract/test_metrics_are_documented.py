"""Every metric a service exposes is in the documentation, with its labels."""

from pathlib import Path

from prometheus_client.metrics import MetricWrapperBase

from assay_runtime import metrics

DOCUMENT = (Path(__file__).parents[2] / "docs/observability.md").read_text()


def test_every_metric_and_its_labels_are_in_the_reference() -> None:
    found = [metric for metric in vars(metrics).values() if isinstance(metric, MetricWrapperBase)]
    assert len(found) >= 10
    for metric in found:
        name = metric._name + ("_total" if metric._type == "counter" else "")
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)
        assert f"| `{name}` | {labels} |".replace("  ", " ") in DOCUMENT, name
