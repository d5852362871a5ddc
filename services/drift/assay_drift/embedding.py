"""A text as a vector of unit length, on this machine, without any download.

The optional package `wordllama` (in the extra `assay-drift[embeddings]`) knows which words mean alike. Without it words and pairs of
words are hashed: enough to see a new topic, blind to paraphrase. The name of what is used is part of the series: another starts anew.
"""

import importlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

Embed = Callable[[Sequence[str]], np.ndarray]
HASHED_DIMENSIONS = 256
#: What of a query is looked at, in characters.
LONGEST = 2_000
_WORD = re.compile(r"\w+")


def hashed(texts: Sequence[str]) -> np.ndarray:
    """Hashed words and pairs of words, one row for each text, of length 1 (0 for a text without words)."""
    rows = np.zeros((len(texts), HASHED_DIMENSIONS), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        words = _WORD.findall(text[:LONGEST].lower())
        for gram in [*words, *(f"{first} {second}" for first, second in pairwise(words))]:
            digest = crc32(gram.encode())
            row[digest % HASHED_DIMENSIONS] += 1.0 if digest & 0x8000_0000 else -1.0
    return _unit(rows)


@cache
def embedder() -> tuple[str, Embed]:
    """The name of the best that is installed, and the function."""
    try:
        wordllama = importlib.import_module("wordllama")  # optional, and slow to import
    except ImportError:
        return f"hashed-{HASHED_DIMENSIONS}", hashed
    folder = Path(str(wordllama.__file__)).parent  # where its wheel keeps the model: nothing is downloaded
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return _unit(np.asarray(model.embed([text[:LONGEST] for text in texts]), dtype=np.float32))

    return "wordllama", embed


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    made: np.ndarray = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return made
