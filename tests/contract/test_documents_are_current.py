"""Generated documents say what the code does."""

from pathlib import Path

from assay_runtime.asyncapi import main

ROOT = Path(__file__).parents[2]


def test_the_asyncapi_documents_are_what_the_services_generate() -> None:
    assert main([str(ROOT / "docs/asyncapi"), "scrubber", "writer", "--check"]) == 0, "run: make docs"
