"""Effect size, and the number of cases that a decision needs. Pure."""

import math
from statistics import NormalDist

import numpy as np

from assay_evals.statistics.resampling import Floats

_NORMAL = NormalDist()


def effect_size(deltas: Floats) -> float | None:
    """Return Cohen's d for paired values, d_z = mean / standard deviation of the differences.

    None if they do not vary.
    """
    present = deltas[~np.isnan(deltas)]
    if len(present) < 2:
        return None
    spread = float(present.std(ddof=1))
    return float(present.mean()) / spread if spread > 0 else None


def cases_needed(deltas: Floats, margin: float, *, level: float = 0.95, power: float = 0.8) -> int | None:
    """Return the cases needed to detect a change of `margin`, by the normal approximation.

    None if the differences do not vary.
    """
    present = deltas[~np.isnan(deltas)]
    if len(present) < 2 or margin <= 0:
        return None
    spread = float(present.std(ddof=1))
    if spread == 0:
        return None
    z = _NORMAL.inv_cdf((1 + level) / 2) + _NORMAL.inv_cdf(power)
    return max(2, math.ceil((z * spread / margin) ** 2))


def unseen_cases(margin: float) -> int:
    """Return the number of equal cases that exclude a change of `margin` in a share.

    If it existed, one of them would have shown it with a probability of 97.5 %.
    """
    return math.ceil(math.log(0.025) / math.log1p(-margin)) if 0 < margin < 1 else 1
