"""The axis of time, and the labels of marks."""

import re
from datetime import UTC, datetime

import pytest

from assay_ui.axes import time_axis, time_scale
from assay_ui.charts import BandPoint, Series, band_marks, bars

_HOUR_MS = 3_600_000


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    ("first", "last", "labels"),
    [
        ("2026-11-24T00:15", "2026-11-29T00:36", ["11-25", "11-26", "11-27", "11-28", "11-29"]),
        ("2026-11-28T00:30", "2026-11-29T00:40", ["11-28 06:00", "11-28 12:00", "11-28 18:00", "11-29 00:00"]),
        ("2026-11-29T10:02", "2026-11-29T10:17", ["10:05", "10:10", "10:15"]),
        ("2026-11-29T10:02:01", "2026-11-29T10:02:03", ["10:02:01", "10:02:02", "10:02:03"]),
        ("2026-10-30T00:36", "2026-11-29T00:36", ["11-05", "11-12", "11-19", "11-26"]),
        ("2026-11-29T00:00", "2026-11-29T00:00:00.001", ["11-29"]),
    ],
)
def test_a_label_stands_at_the_time_that_it_names(first: str, last: str, labels: list[str]) -> None:
    x = time_scale(at(first), at(last))
    drawn = re.findall(
        r'<text class="time(?: last)?" x="([^"]+)"[^>]*>([^<]+)<', time_axis(at(first), at(last), x, 100)
    )
    assert [label for _, label in drawn] == labels
    for place, label in drawn:
        day, _, clock = label.rpartition(" ") if ":" in label else (label, "", "00:00")
        named = at(f"2026-{day or first[5:10]}T{clock}")
        assert float(place) == pytest.approx(x(named), abs=0.1)


def test_an_axis_of_decades_has_few_labels() -> None:
    first, last = at("1970-01-01"), at("2026-11-29")
    assert 1 <= time_axis(first, last, time_scale(first, last), 100).count("<text") <= 5


def test_marks_of_one_day_have_different_labels() -> None:
    starts = [at("2026-11-24") + 6 * _HOUR_MS * place for place in range(24)]
    chart = bars("events", starts, 6 * _HOUR_MS, [Series("answer", "answer", (1.0,) * 24)])
    points = "".join(band_marks([BandPoint(start, 0.5, n=1) for start in starts], (), 100))
    for drawn in (chart, points):
        labels = re.findall(r'data-label="([^"]+)"', drawn)
        assert len(set(labels)) == len(labels) == 24
