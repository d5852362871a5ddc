"""Generate AsyncAPI 3 documents from the services' own wiring.

`python -m docs.generate.asyncapi DIRECTORY SERVICE... [--write | --check]`.
"""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from assay_schema.settings import Settings
from docs.generate.keep import keep

#: Everything that an optional service can read: a document describes what it may do.
_SETTINGS = Settings.model_validate(
    {
        "otlp_exporter": {
            "endpoint": "http://127.0.0.1:4318", "retrievals": True, "answers": True, "verdicts": True,
        },
    }
)  # fmt: skip
#: Addresses and consumer names differ on every machine and are not part of the contract.
_LOCAL = {"host": "redis", "consumerName": "<host>-<process>"}


def document(service: str) -> str:
    """Return the document of `assay_<service>` as JSON, the same on every machine."""
    build = importlib.import_module(f"assay_{service}.app").build
    specification = build(_SETTINGS).application().schema.to_specification().to_jsonable()
    return (
        re.sub(r"[ \t]+$", "", json.dumps(_portable(specification), indent=2, sort_keys=True), flags=re.MULTILINE)
        + "\n"
    )


def _portable(value: Any) -> Any:
    if isinstance(value, dict):
        if (address := value.get("address")) and (braced := re.search(r"{(\d+)}", address)):
            value = {
                **value,
                "parameters": {braced[1]: {"description": "The shard; the braces are part of the key (a hash tag)."}},
            }
        return {
            key: _LOCAL.get(key, _portable(child)) if isinstance(child, str) else _portable(child)
            for key, child in value.items()
        }
    if isinstance(value, list):
        return [_portable(child) for child in value]
    return value


def main(arguments: list[str]) -> int:
    """Run the command."""
    directory, *services = [argument for argument in arguments if not argument.startswith("--")]
    options = [argument for argument in arguments if argument.startswith("--")]
    command = f"python -m docs.generate.asyncapi {directory} {' '.join(services)}"
    return keep({Path(directory) / f"{service}.json": document(service) for service in services}, options, command)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
