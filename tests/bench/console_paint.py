"""When Chromium shows a page of a running console, with an empty cache: paints, and how far the layout moves."""

import time
from typing import Any

from tests.bench.console_pages import DAY_MS, Site, iso, p95
from tests.bench.result import result
from tests.programs import needed
from tests.support.browser import chromium, window

#: Milliseconds until the first and the largest paint, and the sum of shifts of the layout.
FIRST_MS, LARGEST_MS, SHIFT = 1_000, 1_200, 0.02
#: Milliseconds after the load in which something can still be painted or move.
_SETTLE_MS = 500
_WATCH = """
window.seen = {largest: 0, shift: 0};
new PerformanceObserver(list => { for (const each of list.getEntries()) window.seen.largest = each.startTime; })
  .observe({type: "largest-contentful-paint", buffered: true});
new PerformanceObserver(list => { for (const each of list.getEntries()) window.seen.shift += each.value; })
  .observe({type: "layout-shift", buffered: true});
"""
_READ = "() => ({...window.seen, first: performance.getEntriesByName('first-contentful-paint')[0].startTime})"


def measure(site: Site, times: int) -> list[dict[str, Any]]:
    """Open the list of events, each time with another range, in a new context of the browser."""
    seen: list[dict[str, float]] = []
    now_ms = int(time.time() * 1000)
    with chromium(needed("chromium")) as browser:
        for number in range(times):
            with window(browser, site.console) as opened:
                opened.page.add_init_script(_WATCH)
                to_ms = now_ms - number * 61_000
                opened.open(f"/events?from={iso(to_ms - DAY_MS)}&to={iso(to_ms)}")
                opened.page.wait_for_timeout(_SETTLE_MS)
                seen.append(opened.page.evaluate(_READ))
    title = f"/events in Chromium, empty cache, {site.rows:,} events"
    limits = {"first": ("first contentful paint", FIRST_MS), "largest": ("largest contentful paint", LARGEST_MS)}
    found = [
        result(f"{title}: {what}, p95", p95([each[name] for each in seen]), limit, "ms", "<= 1", times)
        for name, (what, limit) in limits.items()
    ]
    shifts = max(each["shift"] for each in seen)
    return [*found, result(f"{title}: layout shift, most", shifts, SHIFT, "", "<= 1", times)]
