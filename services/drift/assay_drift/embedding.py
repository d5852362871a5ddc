"""Local text embeddings: vectors of unit length, without any download.

The optional package `wordllama` (in the extra `assay-drift[embeddings]`) recognizes words of similar meaning. Without
it, words and pairs of words are hashed. That is enough to detect a new topic, but does not recognize paraphrases. The
name of the embedding is part of the series, so another embedding starts a new series.
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
#: Length of the part of a query that is embedded, in characters.
LONGEST = 2_000
_WORD = re.compile(r"\w+")


def hashed(texts: Sequence[str]) -> np.ndarray:
    """Hash words and pairs of words: one row of length 1 for each text (0 for a text without words)."""
    rows = np.zeros((len(texts), HASHED_DIMENSIONS), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        words = _WORD.findall(text[:LONGEST].lower())
        for gram in [*words, *(f"{first} {second}" for first, second in pairwise(words))]:
            digest = crc32(gram.encode())
            row[digest % HASHED_DIMENSIONS] += 1.0 if digest & 0x8000_0000 else -1.0
    return _unit(rows)


@cache
def embedder() -> tuple[str, Embed]:
    """Return the best installed embedding: its name and the function."""
    try:
        wordllama = importlib.import_module("wordllama")  # optional, and slow to import
    except ImportError:
        return f"hashed-{HASHED_DIMENSIONS}", hashed
    folder = Path(str(wordllama.__file__)).parent  # the wheel contains the model, so nothing is downloaded
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)

    def embed(texts: Sequence[str]) -> np.ndarray:
        return _unit(np.asarray(model.embed([text[:LONGEST] for text in texts]), dtype=np.float32))

    return "wordllama", embed


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    made: np.ndarray = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return made
