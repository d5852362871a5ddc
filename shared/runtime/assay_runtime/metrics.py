"""All metrics of Assay's services. Labels never contain captured content."""

import math

from prometheus_client import Counter, Gauge, Histogram

#: Entries a service finished. outcome: `forwarded`, `stored`, `failed`, `buried` (dead letter), `passed_over` (another
#: consumer finished it first, or Redis was restarted and does not have it), `expired` (a dead letter that was not
#: requeued in time).
ENTRIES = Counter("assay_entries", "Stream entries finished, by stream and outcome", ["stream", "outcome"])
#: Entries taken over from a dead or stalled consumer, or from an earlier run of this one.
RECLAIMED = Counter(
    "assay_reclaimed_entries", "Stream entries taken over after their consumer died or stalled", ["stream"]
)
#: Size and duration of batches, from the first step to the acknowledgement.
BATCH_ENTRIES = Histogram(
    "assay_batch_entries",
    "Entries in a batch",
    ["stream"],
    buckets=(1, 10, 100, 500, 1_000, 5_000, 10_000, 20_000, 50_000),
)
BATCH_SECONDS = Histogram("assay_batch_seconds", "Seconds a batch took, including its acknowledgement", ["stream"])
#: Retries of batches because the sink was away.
RETRIES = Counter("assay_sink_retries", "Batches retried because the sink was unavailable", ["stream", "reason"])
#: Personal data removed.
PII_FINDINGS = Counter("assay_pii_findings", "Findings removed by the scrubber, by family", ["family"])
#: Events that a project's policy refused to store; counted once for each category that refused it.
PII_REFUSED = Counter("assay_pii_refused_events", "Events refused by a project's policy, by category", ["category"])
#: The policy. source: `file`, or `default` without a file. outcome: `loaded`, `refused` (the file could not be used;
#: the earlier policy stays in use).
POLICY_CURRENT = Gauge(
    "assay_policy_current", "1 while the policy in use is the one on disk, 0 while the file cannot be used", ["source"]
)
POLICY_LOADS = Counter("assay_policy_loads", "Changed policy files read, by outcome", ["outcome"])
#: State of the streams, read once a second (dead letters once a minute); NaN while Redis does not answer.
LAG = Gauge("assay_lag_entries", "Entries the group has not read yet", ["stream", "shard"])
PENDING = Gauge("assay_pending_entries", "Entries read and not yet acknowledged", ["stream", "shard"])
#: Memory of the writer's unfinished entries, as seen by the scrubber (see `delivery.high_water_bytes`).
BACKLOG_BYTES = Gauge("assay_backlog_bytes", "Bytes of Redis's memory used by unfinished entries", ["stream", "shard"])
#: Complements `process_resident_memory_bytes`, the current value.
MEMORY_BOUND = Gauge("assay_memory_bound_bytes", "Bytes of resident memory that this process stays below")
MEMORY_PEAK = Gauge("assay_memory_peak_bytes", "Peak bytes of resident memory of this process")
#: Dead letters that were not requeued, dropped or expired (see `delivery.dead_bytes`).
DEAD_LETTERS = Gauge("assay_dead_letters", "Dead letters", ["shard"])
DEAD_BYTES = Gauge("assay_dead_bytes", "Bytes of Redis's memory used by dead letters", ["shard"])
SINK_UP = Gauge("assay_sink_up", "1 while the sink accepts batches, 0 while it is away", ["stream"])
WATERMARK_MS = Gauge("assay_watermark_ms", "Unix milliseconds of the closed watermark", ["shard"])
#: The judge. `status` as in `scores`; `result` is `ok` or the class of the error.
JUDGED = Counter("assay_judged_answers", "Answers the judge finished, by status", ["project", "status"])
CHECKS_FAILED = Counter("assay_checks_failed", "Answers that failed a check of layer 1", ["project", "check"])
JUDGE_CALLS = Counter("assay_judge_calls", "Calls of the judge's API", ["result"])
JUDGE_CALL_SECONDS = Histogram(
    "assay_judge_call_seconds",
    "Seconds until a verdict arrived",
    buckets=(0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120),
)
JUDGE_COST = Counter("assay_judge_cost_usd", "US dollars spent on judging", ["project"])
JUDGE_SPENT = Gauge("assay_judge_spent_today_usd", "US dollars spent and reserved today (UTC)", ["project"])
JUDGE_BUDGET = Gauge("assay_judge_budget_usd", "US dollars a project may spend per day")
JUDGE_ANCHORS = Gauge("assay_judge_anchors_right", "Share of anchors that the last round judged correctly")
JUDGE_OBEYED = Gauge(
    "assay_judge_anchors_obeyed", "Share of injected instructions that the judge obeyed in the last round"
)
JUDGE_STOPPED = Gauge("assay_judge_stopped", "1 while the API refuses the judge's key, else 0")
#: From the producer's clock to the stored row.
CAPTURE_TO_STORED = Histogram(
    "assay_capture_to_stored_seconds",
    "Seconds from an event's occurred_at to its durable row",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 3_600),
)
#: Notices sent to receivers. outcome: `sent`, `failed` (will be retried), `given_up` (a dead letter). channel: its
#: kind, and a few hexadecimal digits that distinguish channels of a kind.
NOTICES = Counter("assay_notices", "Notices of alerts, by channel and outcome", ["channel", "outcome"])
CHANNEL_UP = Gauge("assay_notice_channel_up", "1 while a channel accepts notices, 0 after a failure", ["channel"])
OPEN_ALERTS = Gauge("assay_open_alerts", "Open alert episodes, by severity", ["severity"])
#: Any value except 0 is a finding: see `assay_notifier.removed_alerts`.
ALERTS_REMOVED = Counter(
    "assay_alerts_removed", "Alerts that were removed from their stream before the notifier read them", ["shard"]
)
#: From the transition to the receiver that accepted it.
ALERT_TO_NOTICE = Histogram(
    "assay_alert_to_notice_seconds",
    "Seconds from a transition of an alert to a receiver that accepted its notice",
    ["channel"],
    buckets=(0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600, 86_400),
)
#: The gateway. route: `events`, `feedback`, `metrics` or `other`. outcome: `accepted` (in the capture stream) or
#: `rejected`.
GATEWAY_REQUESTS = Counter("assay_gateway_requests", "HTTP requests answered, by route and status", ["route", "status"])
GATEWAY_EVENTS = Counter("assay_gateway_events", "Events received over HTTP, by outcome", ["project", "outcome"])
GATEWAY_REJECTED = Counter(
    "assay_gateway_rejected_events", "Events and spans rejected, by the rule that they broke", ["rule"]
)
GATEWAY_SPANS = Counter(
    "assay_gateway_spans",
    "Spans and log records received over OTLP: accepted, plain (not about AI, dropped), rejected, no_content (accepted, but without texts)",
    ["project", "outcome"],
)
GATEWAY_SECONDS = Histogram(
    "assay_gateway_request_seconds",
    "Seconds from the head of a request to its answer",
    ["route"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30),
)
GATEWAY_IN_FLIGHT = Gauge("assay_gateway_in_flight_bytes", "Bytes of bodies that are being received or stored")
GATEWAY_KEYS = Gauge("assay_gateway_keys", "Keys of HTTP clients that this gateway knows, expired and revoked ones too")
#: Work of the assembler.
ASSEMBLER_SPANS = Counter(
    "assay_assembler_unassembled_spans", "Spans that made no separate event, by reason", ["project", "reason"]
)
ASSEMBLER_LATE = Counter("assay_assembler_late_spans", "Spans that came after their trace was closed")
OPEN_TRACES = Gauge("assay_assembler_open_traces", "Traces that wait for more spans", ["shard"])
#: Work of the OTLP exporter. outcome: `sent`, `rejected` (by the backend, in a request that it took), `refused` (recorded
#: as a failure), `otlp_origin` (not sent, because it came over OTLP).
EXPORTED_SPANS = Counter("assay_otlp_exporter_spans", "Spans of events and verdicts, by outcome", ["outcome"])
EXPORT_UP = Gauge("assay_otlp_exporter_up", "1 while the backend takes spans, 0 after a failure")
#: Work of the auditor. The newest checkpoint covers `assay_audit_checkpoint_leaves` of `assay_audit_leaves` leaves.
AUDIT_LEAVES = Gauge("assay_audit_leaves", "Leaves of the audit log")
AUDIT_CHECKPOINT_LEAVES = Gauge("assay_audit_checkpoint_leaves", "Leaves that the newest signed checkpoint covers")
AUDIT_CHECKPOINT_SECONDS = Gauge(
    "assay_audit_checkpoint_seconds", "Unix time at which the newest checkpoint was known to cover all leaves"
)
AUDIT_WRITES = Gauge(
    "assay_audit_writes", "1 while this auditor writes the log, 0 while another one does or a problem stops it"
)
AUDIT_UNCONFIRMED_ROWS = Counter(
    "assay_audit_unconfirmed_rows",
    "Rows of an interrupted batch that were signed although their sources are gone and no file of the auditor has them",
)
AUDIT_VERIFICATION_MISMATCH = Gauge(
    "assay_audit_verification_mismatch", "1 if the last recorded verification of the audit log found a mismatch"
)
AUDIT_VERIFIED_SECONDS = Gauge(
    "assay_audit_verified_seconds",
    "Unix time of the last recorded verification that read every row or found a mismatch; before the first one, when the log began; "
    "0: the log is empty",
)
#: Anchors of the audit log, by name: the newest checkpoint that each has, since when, and whether it has the newest one.
AUDIT_ANCHOR_LEAVES = Gauge(
    "assay_audit_anchor_leaves", "Leaves that the newest checkpoint of an anchor covers", ["anchor"]
)
AUDIT_ANCHOR_SECONDS = Gauge(
    "assay_audit_anchor_seconds", "Unix time at which an anchor took its newest checkpoint; 0: never", ["anchor"]
)
AUDIT_ANCHOR_UP = Gauge(
    "assay_audit_anchor_up", "1 if an anchor took the last checkpoint that it was given", ["anchor"]
)
AUDIT_ANCHOR_CONTRADICTS = Gauge(
    "assay_audit_anchor_contradicts", "1 if an anchor has another or a longer log of this name", ["anchor"]
)
#: Results of the drift service, by project and metric; an evidence of 1 raises an alert.
TRANSITIONS = Counter(
    "assay_alert_transitions", "Transitions of alert episodes published, by kind and state", ["kind", "state"]
)
EVIDENCE = Gauge("assay_drift_evidence", "Evidence of drift of a metric; 1 raises an alert", ["project", "metric"])


def forget_shard(shard: int) -> None:
    """Mark the state of a shard's streams as unknown, if it was shown before."""
    for gauge in (LAG, PENDING, BACKLOG_BYTES, DEAD_LETTERS, DEAD_BYTES):
        for family in gauge.collect():
            for sample in family.samples:
                if sample.labels["shard"] == str(shard):
                    gauge.labels(**sample.labels).set(math.nan)


#: Projects with their own label; producers choose names, and each costs memory here and in Prometheus.
PROJECTS_MOST = 100
OTHER_PROJECTS = "other"
_projects: set[str] = set()


def project_label(project: str) -> str:
    """Return the label `project`: one of the first `PROJECTS_MOST` names seen here, else `other`."""
    if len(_projects) < PROJECTS_MOST:
        _projects.add(project)
    return project if project in _projects else OTHER_PROJECTS


def labelled_projects() -> list[str]:
    """Return the projects with their own label."""
    return sorted(_projects)
