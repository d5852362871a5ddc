"""Policies of scrubbing, and what scrubs by them."""

import json
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy import Policy
    from assay_scrubber.policy_file import PolicySet
    from assay_scrubber.stream import Complain

#: Complaints shown one by one; the rest is counted.


class Input(StrEnum):
    """What stdin is."""

    AUTO = "auto"
    TEXT = "text"
    NDJSON = "ndjson"


def scrubber_of(file: Path | None, project: str, *, ner: bool, vendor_keys: bool) -> "Scrubber":
    """What scrubs by the policy of a project. Raises `OperationError`."""
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.names import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    found = policies(file)
    try:
        policy = (found.asking(catalogue()) if vendor_keys else found).of(project)
        return NamesScrubber(policy) if ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise OperationError("invalid", str(error)) from None


def policies(file: Path | None) -> "PolicySet":
    """The policies of `file`, or of the settings' own. Raises OperationError."""
    from assay_runtime.config import load_settings
    from assay_scrubber.policies import read_policies
    from assay_scrubber.policy import PolicyError

    settings = load_settings().scrubber
    if file is not None:
        settings = settings.model_copy(update={"policy_file": file})
    try:
        return read_policies(settings)
    except FileNotFoundError:
        raise OperationError("not_found", f"{settings.policy_file}: there is no such file") from None
    except OSError as error:
        raise OperationError("unavailable", f"{settings.policy_file}: cannot be read ({error.strerror})") from None
    except PolicyError as error:
        raise OperationError("invalid", f"{settings.policy_file or 'scrubber'}: {error}") from None


def families_of(policy: "Policy") -> list[dict[str, str]]:
    """What a policy looks for: name, category, what happens to it, what it is."""
    from assay_scrubber.registry import SCRUB_KEY

    return [
        {
            "family": family.name,
            "category": str(family.category),
            "action": str(policy.action(family.name)),
            "description": family.description,
        }
        for family in (*policy.members(), *((SCRUB_KEY,) if policy.scrub_keys else ()))
    ]


def scrubbed(
    stdin: BinaryIO, scrubber: "Scrubber", form: Input, complain: "Complain", *, explain: bool
) -> Iterator[bytes]:
    """What is left of a stream, or with `explain` a line of JSON for each finding. Raises `OperationError` for what is no text."""
    from assay_scrubber import stream

    source, ndjson = _source(stdin, form)
    lines = stream.numbered(source, complain)
    if explain:
        from assay_scrubber.explain import Explaining

        explaining = stream.explain_ndjson if ndjson else stream.explain_text
        for row in explaining(Explaining(scrubber), lines, complain):
            yield json.dumps(row).encode() + b"\n"
    else:
        yield from (stream.scrub_ndjson if ndjson else stream.scrub_text)(scrubber, lines, complain)


def _source(stdin: BinaryIO, form: Input) -> tuple[Iterator[bytes], bool]:
    """The lines of stdin, long ones in pieces, and whether they are NDJSON. Raises OperationError for what is no text."""
    from assay_scrubber.stream import LINE_MAX_BYTES, looks_like_ndjson

    lines = iter(lambda: stdin.readline(LINE_MAX_BYTES), b"")
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if b"\0" in line:
            raise OperationError(
                "invalid", "stdin holds NUL bytes: it is not UTF-8 text; convert it first, such as with iconv"
            )
        if line.strip() or len(head) >= 1_000:
            break
    ndjson = form is Input.NDJSON or (form is Input.AUTO and bool(head) and looks_like_ndjson(head[-1]))
    return chain(head, lines), ndjson
