"""Refusals of the gateway, from its counters."""

from assay_operations.turned_away import refusals_of

EVENTS, REQUESTS = "assay_gateway_rejected_events_total", "assay_gateway_requests_total"


def test_refusals_are_listed_most_first_and_answers_that_are_no_refusal_are_left_out() -> None:
    found = refusals_of(
        {
            "process_start_time_seconds": {(): 1_795_780_800.0},
            EVENTS: {(("rule", "literal_error"),): 1.0, (("rule", "project_forbidden"),): 7.0, (("rule", "x"),): 0.0},
            REQUESTS: {
                (("route", "events"), ("status", "200")): 90.0,
                (("route", "events"), ("status", "401")): 3.0,
                (("route", "traces"), ("status", "499")): 4.0,
                (("route", "other"), ("status", "404")): 460.0,
            },
        }
    )
    assert [(each.what, each.path, each.reason, each.count) for each in found.found] == [
        ("event", "", "project_forbidden", 7),
        ("event", "", "literal_error", 1),
        ("request", "/v1/events", "401", 3),
    ]
    assert found.since
    assert found.since.isoformat() == "2026-11-27T12:00:00+00:00"
