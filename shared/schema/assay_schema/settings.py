"""All settings: meaning, unit and default. Pure: the caller passes in the environment and the file.

Order, first match wins: environment `ASSAY_<SECTION>_<NAME>` (such as `ASSAY_WRITER_BATCH_ROWS`), then the file
`assay.toml` (`[writer]`, `batch_rows = 5000`), then the default below. An unknown name or invalid value stops the start
with a message that lists valid ones. The producers' SDK and the services read the same definitions with the same few
lines, which is why this is not in the runtime.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from assay_schema.fields import Project, Service
from assay_schema.limits import PROJECT_PATTERN
from assay_schema.problems import in_words

#: Path of the settings file, if it is not `./assay.toml`.
FILE_VARIABLE = "ASSAY_CONFIG"
#: The capture switch (see `capture_on`); not a section's setting.
SWITCH_VARIABLE = "ASSAY_CAPTURE"
#: The bearer token that `assay eval` sends to an HTTP target. Only a variable: a token belongs in no settings file.
TOKEN_VARIABLE = "ASSAY_TARGET_TOKEN"  # noqa: S105
_NO_SETTINGS = frozenset({FILE_VARIABLE, SWITCH_VARIABLE, TOKEN_VARIABLE})


class SettingsError(ValueError):
    """A setting has an unknown name or an invalid value. The message names it and the valid ones."""


class Section(BaseModel):
    """Base class of the sections of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _exact(value: Any) -> Any:
    if value in ("true", "false"):
        return value == "true"
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("must be exactly true or false")


#: A switch that must not be set by a typo.
ExactBool = Annotated[bool, BeforeValidator(_exact)]


class RedisSettings(Section):
    """Redis or Valkey, 7.0 or newer, with append-only files on."""

    url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="Address, with user and password if needed. `rediss://` for TLS.",
    )
    mode: Literal["standalone", "cluster", "sentinel"] = Field(
        "standalone",
        description="Kind of server at the address: a single Redis, nodes of a Redis Cluster, or Sentinels, which know the master. "
        "The last two may be several, separated by commas: `redis://user:password@host-1:6379,host-2:6379`.",
    )
    sentinel_master: str = Field("assay", description="The Sentinels' name for the master.")
    sentinel_user: str | None = Field(
        None, examples=["assay"], description="User of the Sentinels; the address's user is that of the master."
    )
    sentinel_password_file: Path | None = Field(
        None, examples=["/etc/assay/password"], description="File with the Sentinels' password, if they need one."
    )
    replicas: int = Field(
        0,
        ge=0,
        le=9,
        description="Replicas that must have an event before the SDK counts it as delivered; 0 waits for none.",
    )
    password_file: Path | None = Field(
        None,
        examples=["/etc/assay/password"],
        description="File with the password, instead of a password in the address.",
    )
    tls_ca_file: Path | None = Field(
        None, examples=["/etc/assay/ca.pem"], description="CA bundle that verifies the server's certificate."
    )
    tls_cert_file: Path | None = Field(None, examples=["/etc/assay/client.pem"], description="Client certificate.")
    tls_key_file: Path | None = Field(None, examples=["/etc/assay/client.key"], description="Client key.")
    shards: int = Field(
        1,
        ge=1,
        le=16,
        description="Number of shards of each stream. Must be the same everywhere; drain the streams before changing it.",
    )
    connect_timeout_s: float = Field(2.0, gt=0, description="Seconds to wait for a connection.")
    command_timeout_s: float = Field(10.0, gt=0, description="Seconds to wait for a reply.")


class StoreSettings(Section):
    """ClickHouse over HTTP: the embedded store or a server, 24.10 or newer."""

    url: str = Field("http://127.0.0.1:8123", description="Address. `https://` for TLS.")
    user: str = Field("default", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password.")
    password_file: Path | None = Field(
        None, examples=["/etc/assay/password"], description="File with the password, instead of `password`."
    )
    tls_ca_file: Path | None = Field(
        None, examples=["/etc/assay/ca.pem"], description="CA bundle that verifies the server's certificate."
    )
    database: str = Field(
        "assay", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Database of the views that people query."
    )
    base_database: str = Field(
        "assay_base", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Database of the tables behind them."
    )
    timeout_s: float = Field(60.0, gt=0, description="Seconds to wait for a reply.")
    uid: int = Field(
        65525,
        ge=1,
        lt=2**32 - 1,
        description="Numeric user and group id for the embedded store if root runs `assay up` on a kernel without Landlock. "
        "Use an id that nothing else on the machine uses.",
    )


class CaptureSettings(Section):
    """The producers' SDK."""

    enabled: ExactBool | None = Field(
        None,
        examples=[True],
        description="True is on, false is off, unset leaves it to `ASSAY_CAPTURE=1`. In the file only.",
    )
    scrub_pii: ExactBool = Field(
        True, description="Scrub personal data. Off only if exactly false, regardless of the capture switch."
    )
    scrub: Literal["service", "producer"] = Field(
        "service",
        description="Where text is scrubbed first: by the scrubber service, or in the producer, before it leaves the process. "
        "The latter needs the extra `assay-capture[scrub]`.",
    )
    sink: Literal["redis", "file", "both"] = Field(
        "redis",
        description="Where events go: to Redis, to a file of scrubbed JSON lines, or both. "
        "A file needs the extra `assay-capture[file]`.",
    )
    url: str | None = Field(
        None,
        examples=["https://assay.example.com"],
        description="Address of the gateway. If set, the SDK sends events there over HTTP instead of to Redis, with a key.",
    )
    key: SecretStr = Field(SecretStr(""), description="Key of the gateway (`assay keys create`).")
    key_file: Path | None = Field(
        None,
        examples=["/etc/assay/key"],
        description="File with the key, instead of `key`. Read again at each request.",
    )
    tls_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/ca.pem"],
        description="CA bundle that verifies the gateway's certificate; default: the system's.",
    )
    timeout_s: float = Field(
        10.0,
        gt=0,
        description="Seconds that the SDK waits for the gateway to connect, and for each part of its answer.",
    )
    file_path: Path | None = Field(
        None,
        examples=["/var/log/my-service/events.jsonl"],
        description="The file of events; default: `assay/events.jsonl` in the user's state directory.",
    )
    file_bytes: int = Field(
        10 * 1024 * 1024, ge=1024, description="Size above which the file of events is rotated, in bytes."
    )
    file_keep: int = Field(
        1, ge=0, le=1000, description="Number of rotated files of events to keep: `PATH.1` is the newest."
    )
    project: Project = Field("default", description="The tenant of every event.")
    service: Service | None = Field(
        None, examples=["my-service"], description="The producer's name; the OpenTelemetry `service.name`."
    )
    queue_entries: int = Field(
        10_000, ge=1, description="Events held in memory before the SDK drops new ones (entries)."
    )
    queue_bytes: int = Field(
        64 * 1024 * 1024, ge=1024, description="Bytes held in memory before the SDK drops new events."
    )
    batch_entries: int = Field(500, ge=1, description="Maximum number of events sent to Redis in one round trip.")
    flush_interval_ms: int = Field(50, ge=1, description="Longest time an event waits for its batch, in milliseconds.")
    exit_deadline_s: float = Field(
        5.0, ge=0, description="Seconds that the SDK may take at exit to send the events in memory."
    )
    close_on_sigterm: ExactBool = Field(
        False,
        description="On SIGTERM, send the events in memory before the process ends. Only in a program without its own handler for SIGTERM.",
    )
    durability: Literal["memory", "spool", "fsync"] = Field(
        "spool",
        description="Where events wait while Redis is away: memory only, a spool on disk, or a spool with fsync per batch.",
    )
    spool_dir: Path | None = Field(
        None,
        examples=["/var/lib/assay-spool"],
        description="Directory of the spool, with a private directory for each user; default: `assay-spool` in the user's state directory.",
    )
    spool_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Maximum size of the spool for one Redis, in bytes; above it, events are dropped and counted.",
    )
    spool_adopt: str = Field(
        "",
        examples=["redis.example-6379-0-9f86d081884c7d65"],
        description="Spooled events for another Redis that should be sent to this one: names of directories in "
        "`assay-spool-UID`, separated by commas; `unnamed` for files of the previous version; `all`.",
    )
    high_water_entries: int = Field(
        1_000_000,
        ge=1,
        description="Maximum number of unscrubbed entries in Redis; above it, events wait in the spool.",
    )
    high_water_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Maximum memory of unscrubbed entries in Redis, in bytes, for each shard; above it, events wait in the spool.",
    )


class DeliverySettings(Section):
    """Consumer groups, common to every service."""

    consumer: str | None = Field(
        None,
        examples=["scrubber-1"],
        description="Consumer name of this process; default: host and process number. A permanent name resumes unfinished entries at once.",
    )
    visibility_timeout_s: float = Field(
        30.0, gt=0, description="Seconds after which another consumer may take over an unfinished entry."
    )
    max_deliveries: int = Field(
        5, ge=1, description="Deliveries after which an entry that fails through its own fault becomes a dead letter."
    )
    history_entries: int = Field(
        10_000, ge=0, description="Stored entries kept in Redis for live tail (entries), within `held_bytes`."
    )
    held_bytes: int = Field(
        96 * 1024 * 1024,
        ge=1024,
        description="Bytes of each stream kept after the writer has stored them: for live tail, and for a judge, drift, "
        "notifier or OTLP exporter service that has stopped.",
    )
    high_water_entries: int = Field(
        1_000_000,
        ge=1,
        description="Maximum number of entries not yet stored by the writer; above it, the scrubber waits; for each shard.",
    )
    high_water_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Maximum memory in Redis of entries not yet stored, in bytes; above it, the scrubber waits; for each shard.",
    )
    watermark_replicas: int = Field(
        1,
        ge=0,
        description="With Sentinels, replicas that must have a watermark before exports use it; without them `redis.replicas` is used.",
    )
    dead_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024,
        description="Maximum memory of dead letters in Redis, in bytes, for each shard; above it, entries stay unfinished in their stream.",
    )
    dead_days: float = Field(7.0, gt=0, description="Days that dead letters are kept.")
    lag_limit_entries: int = Field(100_000, ge=1, description="Unread entries above which `/readyz` reports not ready.")


class GatewaySettings(Section):
    """The gateway service: events over HTTP. It also uses `capture.high_water_...`."""

    listen_host: str = Field("127.0.0.1", description="Listen address of HTTP clients. Use TLS on any other.")
    listen_port: int = Field(4318, ge=0, le=65_535, description="Port of HTTP clients.")
    tls_cert_file: Path | None = Field(
        None, examples=["/etc/assay/gateway.pem"], description="Certificate chain for HTTPS; unset: HTTP."
    )
    tls_key_file: Path | None = Field(
        None, examples=["/etc/assay/gateway.key"], description="Private key of the certificate."
    )
    body_bytes: int = Field(
        16 * 1024 * 1024,
        ge=1024,
        le=256 * 1024 * 1024,
        description="Maximum size of a body, in bytes, as sent and also after decompression.",
    )
    otlp_bytes: int = Field(
        16 * 1024 * 1024,
        ge=1024,
        le=256 * 1024 * 1024,
        description="Maximum size of a body of OpenTelemetry, in bytes, as sent and also after decompression.",
    )
    in_flight_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024,
        description="Maximum size of all bodies that are being received or stored, in bytes; above it, clients get 503 and try again. "
        "The process uses up to four times as much.",
    )
    body_timeout_s: float = Field(30.0, gt=0, le=600, description="Seconds that a client may take to send a request.")
    drain_s: float = Field(
        10.0,
        ge=0,
        le=600,
        description="Seconds that requests may take to end after SIGTERM, before they are cancelled.",
    )
    feedback_per_minute: int = Field(
        120, ge=0, description="Maximum verdicts per minute from one address at `/v1/feedback`; 0: not limited."
    )
    port: int = Field(9106, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class AssemblerSettings(Section):
    """The assembler service: spans to events. Answers are published when their trace closes."""

    grace_s: float = Field(
        6.0,
        ge=0,
        le=600,
        description="Seconds that a trace waits after its first span without a local parent; exporters send every five seconds.",
    )
    idle_s: float = Field(30.0, gt=0, le=3600, description="Seconds that a trace without such a span waits for more.")
    longest_s: float = Field(600.0, gt=0, le=86_400, description="Seconds from its first span to its last.")
    memory_s: float = Field(
        3_600.0,
        gt=0,
        le=31_536_000,
        description="Seconds for which the events of a closed trace are known: a late span sends none again, and feedback finds them. "
        "It takes about 500 bytes of Redis's memory a trace.",
    )
    answer_memory_s: float = Field(
        604_800.0,
        gt=0,
        le=31_536_000,
        description="Seconds for which feedback finds an answer by its trace id or response id. "
        "It takes about 460 bytes of Redis's memory an answer.",
    )
    trace_spans: int = Field(2_000, ge=1, le=100_000, description="Maximum number of spans of a trace.")
    trace_bytes: int = Field(8 * 1024 * 1024, ge=1024, description="Maximum bytes of a trace.")
    open_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Maximum bytes of a shard's open traces, in Redis; above it, the next ones close early.",
    )
    cache_bytes: int = Field(
        16 * 1024 * 1024,
        ge=0,
        description="Bytes of open traces that each shard's consumer remembers, to read them less often.",
    )
    batch_entries: int = Field(200, ge=1, le=5_000, description="Maximum number of entries read in one step.")
    retrieval_tools: dict[str, list[str]] = Field(
        default_factory=dict,
        examples=[{"shop": ["search_*"]}],
        description="By project, patterns of tools that search: a list of documents as their result is a retrieval. "
        "In the file only: `[assembler.retrieval_tools]`.",
    )
    contexts_from_prompt: dict[str, list[str]] = Field(
        default_factory=dict,
        examples=[{"shop": ["context"]}],
        description="By project, variables of prompts that hold retrieved text: the contexts of an answer without a retrieval. "
        "In the file only: `[assembler.contexts_from_prompt]`.",
    )
    feedback_names: dict[str, list[str]] = Field(
        default_factory=dict,
        examples=[{"shop": ["thumbs"]}],
        description="By project, names of evaluations that are a person's feedback, even if these do not name a person. "
        "In the file only: `[assembler.feedback_names]`.",
    )
    user_key_file: Path | None = Field(
        None,
        examples=["/etc/assay/user-key"],
        description="File with a key, 16 bytes or more: user ids of spans become `user_hash` with it. Unset: they are left out.",
    )
    port: int = Field(9107, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class ScrubberSettings(Section):
    """The scrubber service."""

    batch_entries: int = Field(500, ge=1, le=5_000, description="Maximum number of entries scrubbed in one step.")
    scrub_slugs: ExactBool = Field(
        False,
        description="Scrub slugs, source ids and context ids too; by default they are stored unchanged, as the producer's own identifiers.",
    )
    policy_file: Path | None = Field(
        None,
        examples=["/etc/assay/policy.toml"],
        description="Actions for findings, by project: a TOML file, reloaded when it changes. Unset: redact all.",
    )
    hash_key: SecretStr | None = Field(
        None,
        examples=["at-least-sixteen-bytes"],
        description="Key of the action `hash`, 16 bytes or more. The same key gives the same hashes; without it they reveal nothing.",
    )
    hash_key_file: Path | None = Field(
        None, examples=["/etc/assay/hash-key"], description="File with the key, instead of `hash_key`."
    )
    vendor_keys: ExactBool = Field(
        False,
        description="Detect keys of some 400 more vendors with kingfisher; needs the extra `assay-scrubber[kingfisher]`.",
    )
    port: int = Field(9101, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class WriterSettings(Section):
    """The writer service. A batch is written when the first of its three limits is reached."""

    batch_rows: int = Field(5_000, ge=1, le=500_000, description="Maximum rows of an insert.")
    batch_bytes: int = Field(6 * 1024 * 1024, ge=1024, description="Maximum bytes of an insert.")
    batch_age_ms: int = Field(500, ge=1, description="Maximum wait of the oldest row, in milliseconds.")
    port: int = Field(9102, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class DriftSettings(Section):
    """The drift service: windows and thresholds of its alerts. Time is that of the samples."""

    tolerance: float = Field(
        0.03,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="Tolerated relative drop from the baseline: it raises no alert, and ends one.",
    )
    critical_ratio: float = Field(
        0.9, gt=0, lt=1, description="Share of the baseline below which a significant drop is critical."
    )
    clean_evaluations: int = Field(
        24, ge=1, description="Consecutive clean evaluations, one an hour, until an episode is recovering."
    )
    cooldown_hours: float = Field(24.0, ge=0, description="Hours after a resolution before the same series may alert.")
    run_length_days: float = Field(
        365.0,
        gt=0,
        description="Mean time between false alarms, over all series of all metrics together, in days.",
    )
    critical_samples: int = Field(20, ge=2, description="Samples since the change needed for a critical drop.")
    learning_samples: int = Field(300, ge=20, description="Samples needed for the first baseline of a series.")
    learning_days: float = Field(7.0, ge=0, description="Days needed for the first baseline of a series.")
    baseline_days: int = Field(
        30, ge=1, le=60, description="Days of a full baseline; then it is fixed until acknowledged."
    )
    rule: Literal["off", "warn", "critical"] = Field(
        "warn",
        description="Level of the plain rule: the mean of a day is significantly more than 10 % below the rolling or fixed baseline.",
    )
    rule_drop: float = Field(0.1, gt=0, lt=1, description="Drop of the plain rule, as a share of the baseline.")
    rule_hours: int = Field(24, ge=1, le=48, description="Window of the plain rule, in hours.")
    rule_samples: int = Field(100, ge=1, description="Samples that the plain rule needs in its window.")
    ks_effect: float = Field(
        0.1, ge=0, le=1, description="Minimum Kolmogorov-Smirnov distance for an alert on retrieval scores."
    )
    query_reference_days: int = Field(14, ge=7, le=60, description="Days of queries in the reference.")
    query_samples: int = Field(100, ge=10, description="Queries that a day needs to be compared.")
    query_deviations: float = Field(
        5.0, gt=0, description="Minimum shift of queries for an alert, in standard deviations of shuffled days."
    )
    silence_hours: int = Field(6, ge=1, le=24, description="Window for the check of missing judged answers, in hours.")
    silence_ratio: float = Field(
        0.5, ge=0, lt=1, description="Share of the expected answers below which there is an alert for silence; 0: none."
    )
    judge_error_ratio: float = Field(
        0.05, gt=0, lt=1, description="Share of judge errors in a day that raises an alert."
    )
    lag_entries: int = Field(100_000, ge=1, description="Unread entries of a stream that raise an alert.")
    watermark_minutes: float = Field(15.0, gt=0, description="Age of the watermark that raises an alert, in minutes.")
    kappa_min: float = Field(
        0.6,
        ge=-1,
        le=1,
        description="Minimum agreement of the judge with people (lower end of Cohen's kappa) for a metric to page.",
    )
    tnr_min: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Minimum share of bad answers that the judge detects (lower end of the TNR) for a metric to page.",
    )
    calibration_labels: int = Field(50, ge=2, description="Labels that a calibration needs for a metric to page.")
    calibration_bad: int = Field(
        10, ge=1, description="Answers labelled bad by people that a calibration needs for a metric to page."
    )
    page_uncalibrated: bool = Field(False, description="Let metrics of an uncalibrated judge page as well.")
    day_minutes: float = Field(
        1440.0,
        gt=0,
        description="Length of a day, in minutes, and of everything measured in days or hours; shorter only for simulations.",
    )
    batch_entries: int = Field(500, ge=1, le=2_000, description="Maximum number of entries counted in one step.")
    port: int = Field(9104, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class NotifierSettings(Section):
    """The notifier service. Addresses are separated by blanks; in a file, one per line."""

    alertmanager_urls: SecretStr = Field(
        SecretStr(""),
        description="Prometheus Alertmanager, such as `http://alertmanager:9093`; every member of a cluster. Empty: none.",
    )
    alertmanager_urls_file: Path | None = Field(
        None,
        examples=["/etc/assay/alertmanager-urls"],
        description="File with the addresses of Alertmanager, instead of `alertmanager_urls`.",
    )
    alertmanager_token_file: Path | None = Field(
        None, examples=["/etc/assay/alertmanager-token"], description="File with a bearer token for Alertmanager."
    )
    webhook_urls: SecretStr = Field(
        SecretStr(""), description="Receivers of signed webhooks (HMAC-SHA256). Empty: none."
    )
    webhook_urls_file: Path | None = Field(
        None,
        examples=["/etc/assay/webhook-urls"],
        description="File with the addresses of webhooks, instead of `webhook_urls`.",
    )
    webhook_secret: SecretStr = Field(
        SecretStr(""), description="Secret that signs webhooks: `whsec_` and base64, or 24 bytes or more of text."
    )
    webhook_secret_file: Path | None = Field(
        None, examples=["/etc/assay/webhook-secret"], description="File with the secret, instead of `webhook_secret`."
    )
    apprise_urls: SecretStr = Field(
        SecretStr(""), description="Apprise addresses: Slack, PagerDuty, Teams, e-mail and others. Empty: none."
    )
    apprise_urls_file: Path | None = Field(
        None,
        examples=["/etc/assay/apprise-urls"],
        description="File with the Apprise addresses, instead of `apprise_urls`.",
    )
    tls_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/ca.pem"],
        description="CA bundle for the certificates of Alertmanager and webhooks; unset: the system's.",
    )
    timeout_s: float = Field(5.0, gt=0, le=60, description="Seconds to wait for a receiver's reply.")
    group_wait_s: float = Field(
        5.0, ge=0, le=600, description="Seconds to wait for more alerts, to send them in one notice."
    )
    resend_s: float = Field(
        60.0, gt=0, description="Seconds between two posts that keep an open alert active in Alertmanager."
    )
    expire_s: float = Field(
        900.0, gt=0, description="Seconds after which Alertmanager resolves an alert that is no longer posted."
    )
    give_up_h: float = Field(
        24.0, gt=0, description="Hours after which a notice that a receiver does not accept becomes a dead letter."
    )
    data_directory: str = Field(
        "",
        max_length=300,
        examples=["data/staging"],
        description="Data directory that the commands in notices name with `--data`. `assay up` sets it to its own. Empty: none.",
    )
    port: int = Field(9105, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class OtlpExporterSettings(Section):
    """The OTLP exporter service: events and verdicts to an OpenTelemetry backend, as spans.

    Without `endpoint`, it is taken from the variables `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`, `_CERTIFICATE`,
    `_CLIENT_CERTIFICATE`, `_CLIENT_KEY` and `_COMPRESSION`, or those for traces.
    """

    endpoint: str | None = Field(
        None,
        examples=["http://127.0.0.1:4318"],
        description="Address of the backend; `/v1/traces` is added. `assay up` starts the service only if it is set here.",
    )
    headers: SecretStr = Field(
        SecretStr(""),
        description="Headers of every request, such as `x-api-key=KEY,x-project=NAME`. In a value, write a comma as `%2C` and a percent "
        "sign as `%25`.",
    )
    headers_file: Path | None = Field(
        None,
        examples=["/etc/assay/otlp-headers"],
        description="File with the headers, also one a line, instead of `headers`.",
    )
    tls_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/ca.pem"],
        description="CA bundle that verifies the backend's certificate; unset: the system's.",
    )
    tls_cert_file: Path | None = Field(None, examples=["/etc/assay/client.pem"], description="Client certificate.")
    tls_key_file: Path | None = Field(None, examples=["/etc/assay/client.key"], description="Client key.")
    timeout_s: float = Field(10.0, gt=0, le=600, description="Seconds that one request may take.")
    tool_calls: ExactBool = Field(True, description="Export tool calls, as `execute_tool` spans.")
    retrievals: ExactBool = Field(False, description="Export retrievals, as `retrieval` spans.")
    answers: ExactBool = Field(False, description="Export answers, as `chat` spans.")
    verdicts: ExactBool = Field(
        False, description="Export the judge's verdicts, as `gen_ai.evaluation.result` events below the judged span."
    )
    content: ExactBool = Field(
        False, description="Export the scrubbed texts too: arguments, results, queries, passages, questions, answers."
    )
    mode: Literal["child", "link"] = Field(
        "child",
        description="`child`: a span is a child of its caller's span, if that was sampled. `link`: it has its own trace with a link; "
        "for a backend that does not receive the producer's spans.",
    )
    otlp_origin: ExactBool = Field(
        False,
        description="Export events too that came in over OTLP. Their spans exist already in the backend that the producer sends to.",
    )
    port: int = Field(9108, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class AuditorSettings(Section):
    """The auditor service, and how `assay audit` verifies its log."""

    origin: str = Field(
        "assay/audit",
        min_length=1,
        max_length=200,
        pattern=r"^[^\s+]+$",
        examples=["example.com/assay"],
        description="Name of the log in its checkpoints, without spaces and plus signs. Choose one that is yours before the first start: "
        "another name is another log.",
    )
    directory: Path = Field(
        Path("data/audit-log"),
        description="Directory of the log's key and of its file of checkpoints. Auditors of the same log share it; one of them writes.",
    )
    checkpoint_leaves: int = Field(
        1_000, ge=1, description="Leaves after which a checkpoint is signed, before `checkpoint_s` has passed."
    )
    checkpoint_s: float = Field(
        60.0, gt=0, le=86_400, description="Seconds after which a checkpoint is signed if the log has grown."
    )
    batch_rows: int = Field(5_000, ge=1, le=100_000, description="Maximum number of rows written at once.")
    max_unanchored_s: float = Field(
        0.0,
        ge=0,
        description="`assay audit verify` exits 3 if leaves are without a signed checkpoint, or, if anchors are set, at no anchor, for "
        "more seconds than this; 0: never. With only a time-stamp server, set more than `timestamp_s`.",
    )
    vkey: str = Field(
        "",
        description="Public key that `assay audit verify` trusts, as `assay audit key` prints it; empty: that of the key file.",
    )
    witnesses: str = Field(
        "",
        examples=[
            "witness.example.com/w1+13bbdd19+BDuM9wVmZxzNNRuf+HgCQHNkMPTQN3eyq4ZJH+xzZDCw https://witness.example.com"
        ],
        description="Witnesses that cosign every checkpoint (c2sp.org/tlog-witness): public key, a blank, address; separate several by "
        "commas. Empty: none.",
    )
    timestamp_url: str | None = Field(
        None,
        examples=["http://timestamp.example.com"],
        description="Time-stamp server (RFC 3161) that signs when a checkpoint existed; unset: none.",
    )
    timestamp_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/timestamp-ca.pem"],
        description="Root certificates that the certificates of the time-stamp server lead to. Needed with `timestamp_url`.",
    )
    timestamp_s: float = Field(
        3_600.0, ge=0, le=31_536_000, description="Seconds between two time stamps, as public servers limit requests."
    )
    anchor_directory: Path | None = Field(
        None,
        examples=["/mnt/write-once/assay"],
        description="Existing directory, such as a mounted object store with retention, in which every checkpoint becomes a new file that "
        "is never overwritten; unset: none.",
    )
    anchor_timeout_s: float = Field(
        10.0, gt=0, le=120, description="Seconds that a witness or the time-stamp server has for an answer."
    )
    tls_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/ca.pem"],
        description="CA bundle for the `https://` addresses of witnesses and the time-stamp server; unset: the system's.",
    )
    port: int = Field(9110, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class ConsoleSettings(Section):
    """The console service: web pages and the read API at `/api/v1`."""

    listen_host: str = Field(
        "127.0.0.1",
        description='Listen address of browsers. Any other than loopback needs `auth = "proxy"` or `public_url`.',
    )
    listen_port: int = Field(9112, ge=0, le=65_535, description="Port of browsers.")
    public_url: str | None = Field(
        None,
        examples=["https://assay.example.com"],
        description="Address at which browsers reach the console, if not at `listen_host` and `listen_port`: `https://`, or `http://` on "
        "loopback, as behind a published port of a container.",
    )
    auth: Literal["local", "proxy"] = Field(
        "local",
        description="`local`: a link with a token that works once, from `assay console url`. `proxy`: a reverse proxy names the person in "
        "`user_header`.",
    )
    session_key: SecretStr = Field(
        SecretStr(""),
        description="Key that signs links and sessions, 32 bytes or more. Unset: every start makes one, which ends all sessions.",
    )
    session_key_file: Path | None = Field(
        None, examples=["/etc/assay/console-key"], description="File with the key, instead of `session_key`."
    )
    hosts: str = Field(
        "localhost,127.0.0.1,[::1]",
        description="Host names that browsers may use, separated by commas; requests to others are refused.",
    )
    trusted_proxies: str = Field(
        "127.0.0.1,::1",
        description='Addresses of the proxies whose headers are believed (`auth = "proxy"`), separated by commas.',
    )
    proxy_secret: SecretStr = Field(
        SecretStr(""),
        description='Secret that the proxy sends as `X-Assay-Proxy-Secret`. Needed with `auth = "proxy"`.',
    )
    proxy_secret_file: Path | None = Field(
        None, examples=["/etc/assay/proxy-secret"], description="File with the secret, instead of `proxy_secret`."
    )
    user_header: str = Field("X-Forwarded-User", description="Header in which the proxy names the person.")
    groups_header: str = Field(
        "X-Forwarded-Groups", description="Header in which the proxy lists the person's groups, separated by commas."
    )
    labeller_groups: str = Field("", description="Groups whose members may label answers and edit datasets.")
    operator_groups: str = Field(
        "", description="Groups whose members may also acknowledge alerts and requeue dead letters."
    )
    operator_config: Path | None = Field(
        None,
        examples=["/etc/assay/operator.toml"],
        description="Settings file of the identity `operator`, for what operators do on a page. Unset: pages show the command instead.",
    )
    grafana_url: str = Field(
        "",
        examples=["https://grafana.example.com"],
        description="Address of Grafana with the dashboards of deploy/grafana: pages link to them. Empty: they do not.",
    )
    alertmanager_url: str = Field(
        "",
        examples=["https://alertmanager.example.com"],
        description="Address of Alertmanager for people: pages of alerts link to its form of a silence, and name it in the command. Empty: "
        "they do not. A scenario of `assay up` sets it.",
    )
    session_hours: float = Field(12.0, gt=0, le=720, description="Hours that a session lasts.")
    page_reads: int = Field(3, ge=1, le=32, description="Reads of the store for pages at the same time.")
    port: int = Field(9109, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


def _single(value: Any) -> Any:
    if value == "openai-batch":
        raise ValueError("batches exist only for Anthropic's API; use openai, which makes single calls")
    return value


class JudgeSettings(Section):
    """The judge service. Without a key it uses the lexical baseline, offline and free of charge."""

    backend: Annotated[
        Literal["auto", "anthropic", "anthropic-batch", "openai", "lexical"], BeforeValidator(_single)
    ] = Field(
        "auto",
        description="The judge: Anthropic's API, its message batches (half the price, within a day), any API that supports OpenAI's chat "
        "completions (`openai`; a local model too), or the lexical baseline. `auto`: Anthropic's API if a key is set, else "
        "the baseline.",
    )
    api_key: SecretStr = Field(SecretStr(""), description="Key of the API.")
    api_key_file: Path | None = Field(
        None, examples=["/etc/assay/anthropic-key"], description="File with the key, instead of `api_key`."
    )
    base_url: str | None = Field(
        None,
        examples=["http://127.0.0.1:8080"],
        description="Address of the API or of a gateway; unset is Anthropic's own, or OpenAI's (`https://api.openai.com/v1`).",
    )
    model: str = Field("claude-haiku-5-5", description="The judge's model. It must have a price.")
    price_input_usd: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        examples=[0.15],
        description="`openai`: price per million tokens read, in US dollars; 0 for a self-hosted model.",
    )
    price_output_usd: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        examples=[0.6],
        description="`openai`: price per million tokens written, in US dollars.",
    )
    json_mode: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema",
        description="`openai`: how the API is asked for JSON: by its schema, as any JSON, or by the prompt alone.",
    )
    effort: Literal["low", "medium", "high"] = Field("low", description="The effort requested from the model.")
    rules_file: Path | None = Field(
        None,
        examples=["/etc/assay/judge.yaml"],
        description="YAML file with your own checks, boosts and prices; unset uses those that come with Assay.",
    )
    base_rate: float = Field(
        0.05, gt=0, le=1, allow_inf_nan=False, description="Share of answers in the unbiased base stream."
    )
    base_floor_per_day: int = Field(
        50, ge=0, description="Minimum number of base samples per day in a quiet project, as far as it has answers."
    )
    salt: SecretStr = Field(
        SecretStr(""),
        description="Salt of the sample; anyone who knows it can predict which events are judged. Empty: drawn once for each "
        "installation, and kept in Redis.",
    )
    budget_usd_per_day: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="Maximum cost of judging per day (UTC), in US dollars, for each project.",
    )
    budget_usd_per_day_all_projects: float = Field(
        10.0,
        ge=0,
        allow_inf_nan=False,
        description="Maximum cost of judging per day (UTC), in US dollars, for all projects together; with several shards each shard "
        "has an equal part of it. Producers choose project names, so the number of projects is otherwise unlimited.",
    )
    requests_per_minute: int = Field(
        1_000, ge=1, description="Maximum number of requests to the API per minute, over all replicas and projects."
    )
    tokens_per_minute: int = Field(
        400_000,
        ge=1_000,
        description="Maximum number of tokens per minute, read and written, over all replicas and projects.",
    )
    concurrency: int = Field(8, ge=1, le=256, description="Answers that one process judges at the same time.")
    deadline_s: float = Field(
        90.0, gt=0, le=600, allow_inf_nan=False, description="Seconds for one answer, including retries and pauses."
    )
    request_timeout_s: float = Field(
        45.0, gt=0, le=600, allow_inf_nan=False, description="Seconds to wait for one reply of the API."
    )
    max_input_bytes: int = Field(
        200_000,
        ge=1_000,
        description="Maximum size of question, answer and passages together, in bytes; a larger one is a judge error.",
    )
    max_output_tokens: int = Field(4_096, ge=256, le=32_000, description="Maximum length of a verdict, in tokens.")
    batch_wait_s: float = Field(
        3_600.0,
        gt=0,
        allow_inf_nan=False,
        description="`anthropic-batch`: maximum seconds that an answer waits for its batch to be sent.",
    )
    batch_requests: int = Field(
        1_000, ge=1, le=100_000, description="`anthropic-batch`: number of answers at which a batch is sent at once."
    )
    record_days: float = Field(
        8.0,
        gt=0,
        allow_inf_nan=False,
        description="Days for which judged answers are remembered; one that is redelivered later is judged again.",
    )
    anchors_every_days: float = Field(
        7.0, ge=0, allow_inf_nan=False, description="Days between rounds over the fixed anchor cases; 0 for none."
    )
    port: int = Field(9103, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class EvalsSettings(Section):
    """The nightly evaluation, `assay eval nightly`. Nothing runs without a dataset and a target."""

    dataset: Path | None = Field(
        None, examples=["/etc/assay/golden.jsonl"], description="Golden dataset of the evaluation."
    )
    target: str | None = Field(
        None,
        examples=["http://search:8080/v1/search"],
        description="Target of the evaluation: `http://host/path`, `module:function`, or `command: program --flag`.",
    )
    hour: int = Field(3, ge=0, le=23, description="Hour of the day (UTC) from which it may run, once a day.")
    baseline: str | None = Field(
        None,
        examples=["main"],
        description="Run to compare with, by its folder, name or id; unset: the last night that passed.",
    )
    rules: Path | None = Field(
        None,
        examples=["/etc/assay/rules.toml"],
        description="Rules for the night: scorers, thresholds, floors and slices; `--rules` overrides it.",
    )
    runs_dir: str = Field("runs", description="Folder of the runs.")
    project: str = Field("default", pattern=f"^{PROJECT_PATTERN}$", description="Tenant whose system is evaluated.")
    judge: Literal["none", "lexical", "anthropic", "openai"] = Field(
        "none",
        description="Judge of the answers; `anthropic` needs `judge.api_key`, `openai` uses the `[judge]` settings of that backend.",
    )
    budget_usd: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Maximum cost of judging one night, in US dollars."
    )
    deadline_minutes: float = Field(
        120.0, gt=0, le=1_200, allow_inf_nan=False, description="Minutes after which an attempt is abandoned."
    )


class NightlyLongMemEvalSettings(Section):
    """LongMemEval in `assay eval nightly`. Off without a dataset.

    Hour, runs folder, project and deadline are those of `[evals]`.
    """

    dataset: Path | None = Field(
        None, examples=["/etc/assay/longmemeval_s.json"], description="File of LongMemEval (oracle, S or M)."
    )
    target: str = Field(
        "bm25",
        description="Memory: `http://host/path`, `module:function`, `command: program --flag`, or `bm25`, a memory in the process.",
    )
    limit: int | None = Field(None, ge=1, examples=[50], description="Only the first questions; unset: all.")
    judge: Literal["none", "lexical", "anthropic", "openai"] = Field(
        "none", description="Judge of the answers, as for `evals.judge`; `none` measures retrieval only."
    )
    floor: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        examples=[0.8],
        description="Least recall of each question type; below it, the night fails.",
    )
    baseline: Path | None = Field(
        None,
        examples=["runs/main.jsonl"],
        description="Output of a run to compare with; unset: the last night that passed.",
    )
    budget_usd: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Maximum cost of judging one night, in US dollars."
    )


class NightlyCrossModalSettings(Section):
    """A panel of judges in `assay eval nightly`. Off without a panel.

    Hour, runs folder, project and deadline are those of `[evals]`.
    """

    panel: Path | None = Field(
        None, examples=["/etc/assay/panel.toml"], description="Panel file, as for `assay eval cross-modal --panel`."
    )
    answers: Path | None = Field(
        None,
        examples=["/etc/assay/answers.jsonl"],
        description="Answers to judge, one JSON object per line; unset: those of the night's LongMemEval.",
    )
    limit: int = Field(10, ge=1, description="Number of answers, a random sample.")
    budget_usd: float = Field(5.0, ge=0, allow_inf_nan=False, description="Maximum cost of one night, in US dollars.")


class NightlyContradictionsSettings(Section):
    """Contradictions among retrieved documents in `assay eval nightly`. Off without questions.

    Hour, runs folder, project and deadline are those of `[evals]`; the judge is that of `[judge]`.
    """

    queries: Path | None = Field(
        None, examples=["/etc/assay/questions.txt"], description="Questions, plain lines or JSON lines with `query`."
    )
    target: str | None = Field(
        None,
        examples=["http://search:8080/v1/search"],
        description="System that returns the documents with their texts, as for `evals.target`.",
    )
    limit: int | None = Field(
        None,
        ge=1,
        le=10_000,
        examples=[200],
        description="Maximum number of distinct questions, the first ones; unset: all.",
    )
    top_k: int = Field(5, ge=2, le=50, description="Number of documents of each question, the first ones.")
    max_rate: float | None = Field(
        None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        examples=[0.1],
        description="The night fails if the share of questions with a contradiction is significantly above this.",
    )
    fail_on: Literal["", "info", "low", "medium", "high"] = Field(
        "", description="The night fails if a finding has this severity or a higher one; empty: none does."
    )
    budget_usd: float = Field(1.0, ge=0, allow_inf_nan=False, description="Maximum cost of one night, in US dollars.")


class RetentionSettings(Section):
    """Retention of rows in the tables. `assay prune` removes rows earlier."""

    days: int = Field(90, ge=1, le=36_500, description="Days a row is kept, unless its project has its own value.")
    audit_days: int = Field(
        0,
        ge=0,
        le=36_500,
        description="Days a row of the audit log is kept, of all projects; `assay audit expire` deletes older ones. 0: indefinitely.",
    )
    projects: dict[str, int] = Field(
        default_factory=dict,
        examples=[{"my-project": 30}],
        description="Days by project. In the file only: `[retention.projects]`.",
    )


class TelemetrySettings(Section):
    """Assay's own observability."""

    host: str = Field("127.0.0.1", description="Listen address of health and metrics.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Minimum severity of log messages."
    )
    log_format: Literal["json", "text"] = Field("json", description="One JSON object per line, or text for people.")
    otlp_endpoint: str | None = Field(
        None,
        examples=["http://127.0.0.1:4318"],
        description="OTLP/HTTP collector, such as `http://127.0.0.1:4318`; unset exports no spans.",
    )


class Settings(Section):
    """All sections."""

    redis: RedisSettings = RedisSettings()
    store: StoreSettings = StoreSettings()
    capture: CaptureSettings = CaptureSettings()
    delivery: DeliverySettings = DeliverySettings()
    gateway: GatewaySettings = GatewaySettings()
    assembler: AssemblerSettings = AssemblerSettings()
    scrubber: ScrubberSettings = ScrubberSettings()
    writer: WriterSettings = WriterSettings()
    drift: DriftSettings = DriftSettings()
    notifier: NotifierSettings = NotifierSettings()
    otlp_exporter: OtlpExporterSettings = OtlpExporterSettings()
    auditor: AuditorSettings = AuditorSettings()
    console: ConsoleSettings = ConsoleSettings()
    judge: JudgeSettings = JudgeSettings()
    evals: EvalsSettings = EvalsSettings()
    nightly_longmemeval: NightlyLongMemEvalSettings = NightlyLongMemEvalSettings()
    nightly_cross_modal: NightlyCrossModalSettings = NightlyCrossModalSettings()
    nightly_contradictions: NightlyContradictionsSettings = NightlyContradictionsSettings()
    retention: RetentionSettings = RetentionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @property
    def has_nightly_evaluation(self) -> bool:
        """True if `assay eval nightly` has something to run."""
        named = (
            self.evals.dataset, self.nightly_longmemeval.dataset, self.nightly_cross_modal.panel, self.nightly_contradictions.queries
        )  # fmt: skip
        return any(each is not None for each in named)


#: Setting that decides where a section's secrets are sent, and these secrets. `OTEL_...` are variables of OpenTelemetry
#: itself.
_SENT_TO = (
    ("redis", ("url", "tls_ca_file"), ("password_file", "sentinel_password_file")),
    ("store", ("url", "tls_ca_file"), ("password", "password_file")),
    ("capture", ("url", "tls_ca_file"), ("key", "key_file")),
    ("judge", ("base_url", "backend"), ("api_key", "api_key_file")),
    ("notifier", ("alertmanager_urls", "alertmanager_urls_file", "tls_ca_file"), ("alertmanager_token_file",)),
    ("otlp_exporter", ("endpoint", "tls_ca_file"), ("headers", "headers_file")),
    ("telemetry", ("otlp_endpoint",), ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")),
)


#: `capture.enabled` is in the producer's own code; tables by project are only in the file.
_WITHOUT_VARIABLE = {
    ("capture", "enabled"),
    ("retention", "projects"),
    ("assembler", "retrieval_tools"),
    ("assembler", "contexts_from_prompt"),
    ("assembler", "feedback_names"),
}


def variables(model: type[Settings] = Settings) -> dict[str, tuple[str, str]]:
    """Return every environment variable and the (section, name) it sets."""
    found = {}
    for section, field in model.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, Section)
        for name in field.annotation.model_fields:
            if (section, name) not in _WITHOUT_VARIABLE:
                found[f"ASSAY_{section}_{name}".upper()] = (section, name)
    return found


def unknown_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the `ASSAY_*` variables that set nothing, each with the most similar one that does, or ''."""
    known = [*variables(), *_NO_SETTINGS]
    unknown = sorted(name for name in environment if name.startswith("ASSAY_") and name not in known)
    return {name: next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_SIMILAR)), "") for name in unknown}


def settings_from(
    environment: Mapping[str, str],
    file: str = "",
    *,
    file_name: str = "assay.toml",
    strict: bool = True,
    implicit: bool = False,
) -> Settings:
    """Build settings from an environment and the text of a settings file.

    `strict` also refuses unknown `ASSAY_*` variables; the SDK is not strict, because a producer's host may have
    settings of newer services. `implicit`: the file was not named but found, perhaps in an untrusted checkout. It then
    does not decide where secrets from other sources are sent. Raises `SettingsError`.
    """
    try:
        values: dict[str, Any] = tomllib.loads(file)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file_name} is not valid TOML: {error}") from None
    by_variable = variables()
    for section in Settings.model_fields:
        if not isinstance(values.get(section, {}), dict):
            raise SettingsError(f"{file_name}: {section} is a section: write [{section}] and its settings below")
    if implicit:
        _expect_no_redirection(values, environment, file_name)
    for variable, text in environment.items():
        if variable in by_variable:
            section, name = by_variable[variable]
            values.setdefault(section, {})[name] = text
        elif strict and variable.startswith("ASSAY_") and variable not in _NO_SETTINGS:
            raise SettingsError(f"unknown setting {variable}{_suggestion(variable, by_variable)}")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(problem, file_name) for problem in error.errors())) from None


def capture_on(settings: CaptureSettings, environment: Mapping[str, str]) -> bool:
    """Return the capture switch.

    The file's `capture.enabled` decides; if unset, `ASSAY_CAPTURE` exactly `1` is on; otherwise off.
    """
    if settings.enabled is not None:
        return settings.enabled
    return environment.get(SWITCH_VARIABLE) == "1"


def _expect_no_redirection(file: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str], name: str) -> None:
    """Raise `SettingsError` if an implicit file decides where a secret from another source is sent."""
    for section, addresses, secrets in _SENT_TO:
        given = file.get(section, {})
        decides = [each for each in addresses if each in given and _variable(section, each) not in environment]
        # Of the backends, only this one sends a key to a different default address.
        decides = [each for each in decides if each != "backend" or given[each] == "openai"]
        for secret in secrets if decides else ():
            variable = secret if secret.startswith("OTEL_") else _variable(section, secret)
            if variable in environment:
                source = f"{variable} is set in the environment"
            elif secret.endswith("_file") and secret in given:
                source = f"{section}.{secret} names another file"
            else:
                continue
            raise SettingsError(
                f"{section}.{decides[0]} comes from ./{name}, which was read only because it is in the working directory, and {source}: "
                f"the secret would be sent where ./{name} says. Set {_variable(section, decides[0])}, or, if you trust the file, "
                f"name it: {FILE_VARIABLE}={name}"
            )


def _variable(section: str, name: str) -> str:
    return f"ASSAY_{section}_{name}".upper()


#: A slip of the finger, as in ASSAY_CAPTUER_SINK. Names of other settings of one section are less similar than this.
_SIMILAR = 0.85


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; the valid ones are {', '.join(sorted(known))}"


def _explain(problem: Any, file_name: str) -> str:
    section, *rest = (str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        sections = Settings.model_fields
        if not rest:
            return f"{file_name}: unknown section [{section}]{_suggestion(section, sections)}"
        annotation = sections[section].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        return f"{file_name}: unknown setting {section}.{rest[0]}{_suggestion(rest[0], annotation.model_fields)}"
    variable = f"ASSAY_{section}_{'_'.join(rest)}".upper()
    also = f" (or {variable})" if variable in variables() else ""
    return f"{section}.{'.'.join(rest)}{also}: {in_words(problem)}"
