"""A sequential test for a drop, in ten floats. Pure.

The betting e-detector of Shin, Ramdas and Rinaldo ("E-detectors: a nonparametric framework for sequential change detection",
arXiv 2203.03532): for samples x in [0, 1] whose conditional mean is at least `floor`, each bet `M = (M + 1) * (1 + l * (floor - x))`
has an expectation of at most the number of samples so far. So the mean of the bets stays below A for A samples on average, whatever the
shape of the samples: a promise that tests tuned for a normal distribution break on scores, which pile up near 1.

Beside it runs a CUSUM with the same floor. It raises nothing; it dates the change: since it was last at zero.
"""

from dataclasses import dataclass, field

#: What the bets stake. Small ones find small drops, large ones find large drops sooner.
STAKES = (0.25, 0.5, 0.8, 1.1)
#: Independent samples that a block is worth, where samples are not independent.
BLOCK = 3
#: No bet grows beyond this: far above every threshold, far below overflow.
_MOST = 1e100


@dataclass(slots=True)
class Detector:
    """The state: four bets, the CUSUM, and since it was last at zero the time (Unix ms), the number of samples and their sum.

    Beside these there is the block that is not full yet: its samples and their sum.
    """

    bets: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))
    cusum: float = 0.0
    since_ms: float = 0.0
    n: float = 0.0
    total: float = 0.0
    block_n: float = 0.0
    block_total: float = 0.0

    def update(self, x: float, at_ms: float, floor: float, design_effect: float = 1.0) -> None:
        """Take a sample in [0, 1], higher is better. `floor` is the least mean that is well. Order matters little: late ones may come.

        Where `design_effect` samples say as much as one independent one, bets are made on the mean of a block of samples, which is long
        beside what its samples have in common with the next.
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
        """Mean of the bets: below A for A samples on average as long as nothing dropped below the floor."""
        return sum(self.bets) / len(self.bets)

    @property
    def mean(self) -> float | None:
        """Mean since the change; None while there is no sign of one."""
        return self.total / self.n if self.n else None

    def dump(self) -> list[float]:
        """As floats."""
        return [*self.bets, self.cusum, self.since_ms, self.n, self.total, self.block_n, self.block_total]

    @classmethod
    def load(cls, floats: list[float]) -> "Detector":
        """From floats; what was kept before has no block."""
        return cls(list(floats[: len(STAKES)]), *floats[len(STAKES) :])
