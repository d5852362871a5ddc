"""Multipart forms: a query's long parameters, and tables sent with it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay_store.errors import BAD_ARGUMENTS, StoreError

_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))', re.IGNORECASE)
_NAME = re.compile(rb';\s*name="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_FILENAME = re.compile(rb";\s*filename\*?=", re.IGNORECASE)


@dataclass(frozen=True)
class Form:
    """The parts of a form: plain fields, and files (parts with a file name)."""

    fields: dict[str, str]
    files: dict[str, bytes]


def parse(content_type: str, body: bytes) -> Form:
    """Parse a multipart/form-data body.

    Raises:
        StoreError: the body is not a well-formed form (36).
    """
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise StoreError(BAD_ARGUMENTS, "A multipart request needs a boundary in its Content-Type")
    delimiter = b"--" + (match.group(1) or match.group(2)).encode("latin-1")
    pieces = (b"\r\n" + body).split(b"\r\n" + delimiter)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise StoreError(BAD_ARGUMENTS, "The multipart body ends before its last boundary")
    form = Form({}, {})
    for piece in pieces[1:-1]:
        head, separator, content = piece.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not separator or name is None:
            raise StoreError(BAD_ARGUMENTS, "A part of the multipart body has no name")
        key = name.group(1).decode("utf-8", "replace")
        if _FILENAME.search(head):
            form.files[key] = content
        else:
            form.fields[key] = content.decode("utf-8", "surrogateescape")
    return form
