"""Health checks of clocks and of the ids that follow them. Pure: measurements in, findings out."""

from assay_operations.doctor.finding import Finding, Status, age

CLOCK_WARN_S, CLOCK_FAIL_S = 1.0, 60.0


def clock(name: str, ahead_s: float) -> Finding:
    """Check a clock against this host's. Redis's clock dates every row (`created_at`)."""
    off = abs(ahead_s)
    status = Status.FAIL if off >= CLOCK_FAIL_S else Status.WARN if off >= CLOCK_WARN_S else Status.OK
    summary = f"{age(off)} {'ahead of' if ahead_s > 0 else 'behind'} this host"
    return Finding(
        f"clock of {name}",
        status,
        summary,
        "" if status is Status.OK else f"synchronise the clocks of this host and of {name} (NTP)",
    )


def stream_ids(ahead_s: float) -> Finding:
    """Check the newest delivered entry against Redis's own clock.

    A producer can choose an id, and every later entry gets a higher one; the ids of rows and `created_at` follow it.
    """
    check = "stream ids"
    if ahead_s < CLOCK_WARN_S:
        return Finding(check, Status.OK, "not ahead of Redis's clock")
    return Finding(
        check,
        Status.FAIL if ahead_s >= CLOCK_FAIL_S else Status.WARN,
        f"{age(ahead_s)} ahead of Redis's clock",
        "its clock was set back, or a producer chose its own id; see Ids ahead of the clock in deploy/redis/README.md",
    )
