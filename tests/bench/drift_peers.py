"""Runs in the benchmarks' own environment: river's detectors over the arrays of a file. Writes at which samples each raised an alarm."""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from river.drift import ADWIN, PageHinkley

DETECTORS: dict[str, Callable[[], Any]] = {
    "Page-Hinkley (river)": lambda: PageHinkley(mode="down"),
    "ADWIN (river)": ADWIN,
}


def alarms(make: Callable[[], Any], scores: "np.ndarray[Any, Any]") -> list[int]:
    """Where a detector says drift; it starts anew after each."""
    found, detector = [], make()
    for place, score in enumerate(scores.tolist()):
        detector.update(score)
        if detector.drift_detected:
            found.append(place)
            detector = make()
    return found


def main(source: str, target: str) -> None:
    """Read the arrays, write the alarms."""
    with np.load(source) as arrays, open(target, "w") as out:  # noqa: PTH123
        json.dump(
            {name: {key: alarms(make, arrays[key]) for key in arrays.files} for name, make in DETECTORS.items()}, out
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
