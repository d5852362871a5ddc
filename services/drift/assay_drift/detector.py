"""A sequential test for a drop, in ten floats. Pure.

The betting e-detector of Shin, Ramdas and Rinaldo ("E-detectors: a nonparametric framework for sequential change
detection", arXiv 2203.03532): for samples x in [0, 1] with a conditional mean of at least `floor`, each bet `M = (M +
1) * (1 + l * (floor - x))` has an expectation of at most the number of samples so far. The mean of the bets therefore
stays below A for A samples on average, for any distribution of the samples. Tests tuned for a normal distribution
break this guarantee on scores, which pile up near 1.

A CUSUM with the same floor dates the change: it began when the CUSUM was last zero. The CUSUM raises no alerts.
"""

from dataclasses import dataclass, field

#: Stakes of the bets. Small stakes detect small drops; large stakes detect large drops sooner.
STAKES = (0.25, 0.5, 0.8, 1.1)
#: Size of a block in independent samples, for correlated samples.
BLOCK = 3
#: Upper bound of a bet: far above every threshold, far below overflow.
_MOST = 1e100


@dataclass(slots=True)
class Detector:
    """State: four bets, the CUSUM, and the samples since that was zero (Unix ms, count and sum).

    The last two fields hold the block that is not yet full: the number of its samples and their sum.
    """

    bets: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))
    cusum: float = 0.0
    since_ms: float = 0.0
    n: float = 0.0
    total: float = 0.0
    block_n: float = 0.0
    block_total: float = 0.0

    def update(self, x: float, at_ms: float, floor: float, design_effect: float = 1.0) -> None:
        """Count a sample in [0, 1], where higher is better. `floor` is the lowest acceptable mean.

        Order matters little, so late samples are fine. If `design_effect` samples are worth one independent sample,
        each bet uses the mean of a block of samples. The block is long compared with the correlation between samples.
        """
        self.block_n += 1
        self.block_total += x
        if design_effect <= 1 or self.block_n >= BLOCK * design_effect:
            self._bet(self.block_total / self.block_n, floor, self.block_n / design_effect)
            self.block_n = self.block_total = 0.0
        self.cusum += floor - x
        if self.cusum <= 0:
            self.cusum, self.since_ms, self.n, self.total = 0.0, at_ms, 0.0, 0.0
        else:
            self.n += 1
            self.total += x

    def _bet(self, mean: float, floor: float, independent: float) -> None:
        most = 0.95 / (1 - floor) if floor < 1 else STAKES[-1]
        for place, stake in enumerate(STAKES):
            growth = 1 + min(stake * independent, most) * (floor - mean)
            self.bets[place] = min((self.bets[place] + independent) * growth, _MOST)

    @property
    def evidence(self) -> float:
        """Mean of the bets: below A for A samples on average, unless the mean drops below the floor."""
        return sum(self.bets) / len(self.bets)

    @property
    def mean(self) -> float | None:
        """Mean since the change; None without a sign of a change."""
        return self.total / self.n if self.n else None

    def dump(self) -> list[float]:
        """Return the state as floats."""
        return [*self.bets, self.cusum, self.since_ms, self.n, self.total, self.block_n, self.block_total]

    @classmethod
    def load(cls, floats: list[float]) -> "Detector":
        """Load the state from floats. Older states have no block."""
        return cls(list(floats[: len(STAKES)]), *floats[len(STAKES) :])
