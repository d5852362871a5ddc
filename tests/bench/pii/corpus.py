"""`python -m tests.bench.pii.corpus PER_VARIETY CLEAN FILE`: the held-out corpus as lines of JSON. Runs in the peers' environment.

Its seed is derived in `seed`, its values from `values`, its sentences from `carriers`.
A line has `text`, `part` and `spans` [[variety, start, end]] of what was planted.
"""

import json
import pydoc_data.topics
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .carriers import phrases, wrappers
from .seed import seeded
from .values import MAKERS, digits, fake


def planted(rng: random.Random, variety: str) -> dict[str, Any]:
    """One value of the variety in a sentence in a carrier."""
    value = MAKERS[variety](rng)
    before, _, after = rng.choice(phrases(variety)).replace("{{", "{").replace("}}", "}").partition("{}")
    head, tail, encode = wrappers(rng)
    head += encode(before)
    text = head + encode(value) + encode(after) + tail
    return {"text": text, "spans": [[variety, len(head), len(head) + len(encode(value))]]}


def look_alike(rng: random.Random) -> str:
    """A short text without personal data, of a kind that services send all day."""
    faker = fake(rng, "en_US")
    hexes = f"{rng.getrandbits(256):064x}"
    form = rng.choice(
        [
            "trace {uuid} span {hex16}", "commit {hex40} by ci", "sha256:{hex64}", "took {ms} ms at {epoch}",
            "epoch_ms={epoch}{d3}", "{iso} WARN pool exhausted (size={d2}, waiting={d3})", "upgraded from {v} to {v}",
            "order {d10} shipped on {iso}", "invoice INV-{d4}-{d6} over ${d3}.{d2}", "ISBN 978-{d1}-{d4}-{d4}-{d1}",
            "{lat}, {lon}", "SELECT * FROM t WHERE id IN ({d6}, {d7}, {d8})",
            "for i in range({d3}): total += xs[i] * {lat}",
            "https://docs.example.com/{word}/{v}/{word}.html#{word}-{d3}",
            '{{"id": {d9}, "name": "{word}", "score": 0.{d8}, "tags": ["{word}", "{word}"]}}',
            "arXiv:23{d2}.{d5}v{d1}", "doi 10.{d4}/{word}.{d7}", "sku {d4}-{d4}-{d3} x{d1}",
            "{word} {word} at {d2}:{d2}, gate {d2}", "{sentence}", "{sentence} {sentence}", "{sentence}",
            "{sentence}", "def {word}_{word}(self, {word}=None): return self.{word}[{d3}:{d5}]",
            "0x{hex16} <main+{d3}>", "build #{d6} ({hex40})", "/usr/lib/{word}/{word}.so.{v}",
            "flight LH{d3} on {iso}", "pages {d2}-{d3}, {d4}-{d4}", "ratio {d1}.{d8} vs {d1}.{d8}",
            "sk-{word}__{word} {{ margin: {d1}px; }}", "tracking 1Z{d6}{d8}", "version {v}.{d1}",
            "batch {d10} of {d12}", "data:image/png;base64,{hex64}", "@{word}/{word}@{v}", "{word}@{v}",
            "git@github.com:{word}/{word}.git", "std::{word}::{word}",
        ]
    )  # fmt: skip
    fields = {f"d{n}": digits(rng, n) for n in range(1, 13)} | {f"hex{n}": hexes[:n] for n in (16, 40, 64)}
    return form.format(
        **fields,
        uuid=faker.uuid4(),
        ms=rng.randrange(9000),
        epoch=rng.randrange(1_600_000_000, 1_900_000_000),
        iso=faker.iso8601(),
        v=f"{rng.randrange(20)}.{rng.randrange(40)}.{rng.randrange(30)}",
        lat=f"{rng.uniform(-90, 90):.6f}",
        lon=f"{rng.uniform(-180, 180):.6f}",
        word=faker.word(),
        sentence=faker.sentence(nb_words=rng.randrange(6, 24)),
    )


_PASSAGES = [
    passage
    for topic in sorted(pydoc_data.topics.topics)
    for passage in re.findall(r"(?s)\S.{150,1500}?(?=\n\n|\Z)", pydoc_data.topics.topics[topic])
]


def clean(rng: random.Random) -> str:
    """What services send: a question, an answer, a passage of documentation, a tool's JSON; sizes from 20 B to some KB."""
    faker = fake(rng, "en_US")
    kinds: list[Callable[[], str]] = [
        lambda: faker.sentence(nb_words=rng.randrange(4, 14))[:-1] + "?",
        lambda: faker.paragraph(nb_sentences=rng.randrange(1, 8)),
        lambda: rng.choice(_PASSAGES),
        lambda: f"{faker.sentence(nb_words=8)} {look_alike(rng)}, {faker.sentence(nb_words=6)}",
        lambda: json.dumps(
            {"query": faker.sentence(), "limit": rng.randrange(100), "slugs": [faker.slug() for _ in "12345"]}
        ),
    ]
    return "\n".join(rng.choice(kinds)() for _ in range(rng.choice([1, 1, 1, 1, 2, 3, 8])))


def looking_alike(rng: random.Random) -> str:
    """Nothing but what looks like personal data, line after line: the hardest clean texts."""
    return "\n".join(look_alike(rng) for _ in range(rng.choice([1, 1, 2, 3, 5, 12, 40])))


def dense(rng: random.Random) -> dict[str, Any]:
    """Clean text with one to three planted values in it: the speed of texts with personal data."""
    text, spans = clean(rng) + "\n", []
    for _ in range(rng.randrange(1, 4)):
        part = planted(rng, rng.choice(COMMON))
        variety, start, end = part["spans"][0]
        spans.append([variety, start + len(text), end + len(text)])
        text += part["text"] + "\n"
    return {"text": text, "spans": spans}


#: What texts with personal data mostly hold; of these the speed is measured.
COMMON = (
    "email",
    "email",
    "phone/us",
    "phone/international",
    "us_ssn",
    "payment_card",
    "iban",
    "ip_address/v4",
    "connection_url",
    "jwt",
)


PARTS = {"clean": clean, "look-alikes": looking_alike, "pii": dense}


def write(path: Path, per_variety: int, texts: int) -> None:
    """Lines of the part `accuracy`, then of the three parts whose speed is measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for variety in MAKERS:
            rng = seeded(variety)
            for _ in range(per_variety):
                file.write(json.dumps(planted(rng, variety) | {"part": "accuracy"}) + "\n")
        for part in PARTS:
            rng = seeded(part)
            for _ in range(texts):
                line = dense(rng) if part == "pii" else {"text": PARTS[part](rng), "spans": []}
                file.write(json.dumps(line | {"part": part}) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[3]), int(sys.argv[1]), int(sys.argv[2]))
