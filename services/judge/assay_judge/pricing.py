"""Cost of a call: an upper bound before it, the actual figure after. Pure.

Amounts are integers in nano-dollars, so sums are exact.
"""

import json
from dataclasses import dataclass
from math import ceil

from assay_judge.judge_config import JudgeConfig, Price
from assay_judge.prompt import SYSTEM
from assay_judge.verdict import SCHEMA
from assay_schema.settings import SettingsError

NANO = 1_000_000_000
#: Tokens that the API may add: the frame of a request and its instructions for structured output.
FRAME_TOKENS = 2_000
#: Bytes of a prompt that are the same in every call. A token has at least one byte, so bytes are an upper bound of
#: tokens.
FIXED_BYTES = len(SYSTEM.encode()) + len(json.dumps(SCHEMA).encode())


@dataclass(frozen=True)
class Usage:
    """Tokens of one or several calls, as counted by the API. `input` excludes cache reads and writes."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def read(self) -> int:
        """Number of all tokens read."""
        return self.input + self.cache_read + self.cache_write


class Tariff:
    """Prices of one model, in nano-dollars per token, for single calls or batches."""

    def __init__(self, price: Price, *, batch: bool = False) -> None:
        share = 1_000 * (price.batch if batch else 1.0)  # from dollars per million tokens to nano-dollars per token
        self._input = price.input * share
        self._output = price.output * share
        self._read = (price.input if price.cache_read is None else price.cache_read) * share
        self._write = (1.25 * price.input if price.cache_write is None else price.cache_write) * share

    def cost(self, usage: Usage) -> int:
        """Return the cost of a call, rounded up."""
        return ceil(
            usage.input * self._input
            + usage.output * self._output
            + usage.cache_read * self._read
            + usage.cache_write * self._write
        )

    def bound(self, message_bytes: int, max_output_tokens: int) -> int:
        """Return an upper bound of the cost of a call."""
        return ceil(
            bound_tokens(message_bytes) * max(self._input, self._write, self._read) + max_output_tokens * self._output
        )


def bound_tokens(message_bytes: int) -> int:
    """Return an upper bound of the tokens that a call can read."""
    return message_bytes + FIXED_BYTES + FRAME_TOKENS


def tariff_of(config: JudgeConfig, model: str, *, batch: bool) -> Tariff:
    """Return the tariff of a model.

    Raises `SettingsError` for a model without a price, because its cost could not be capped.
    """
    price = config.prices.models.get(model)
    if price is None:
        raise SettingsError(
            f"judge.model {model!r} has no price, so its cost cannot be capped; the price list of {config.prices.as_of} contains "
            f"{config.known_models}. Add prices.models to the file named by judge.rules_file (ASSAY_JUDGE_RULES_FILE)"
        )
    return Tariff(price, batch=batch)


def dollars(nano: int) -> float:
    """Convert nano-dollars to dollars, for people and documents."""
    return nano / NANO
