"""The cost of judging a session, in money and tokens."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from assay_judge.call_budget import Bill


@dataclass(frozen=True)
class Cost:
    """Cost of calls to a model: money in nano-dollars, and tokens."""

    nano: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, bill: "Bill") -> Self:
        """Return the cost on a bill."""
        return cls(bill.nano, bill.usage.read, bill.usage.output)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.nano + other.nano, self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens
        )

    def fields(self) -> dict[str, Any]:
        """Return the fields of a score."""
        from assay_judge.pricing import dollars

        return {
            "cost_usd": dollars(self.nano),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }


NOTHING: Final = Cost()
