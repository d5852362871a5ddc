"""Every setting, in one place: what it means, its unit, its default. Pure: the caller hands in the environment and the file.

Order, first match wins: environment `ASSAY_<SECTION>_<NAME>` (such as `ASSAY_WRITER_BATCH_ROWS`), then the file `assay.toml`
(`[writer]`, `batch_rows = 5000`), then the default below. A name or value that does not fit stops the start with what would fit.
The producers' SDK and the services read the same definitions through the same few lines, which is why this is not in the runtime.
"""

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from assay_schema.events import Project, Service
from assay_schema.problems import in_words

#: Names the settings file when it is not `./assay.toml`.
FILE_VARIABLE = "ASSAY_CONFIG"
#: The capture switch (see `capture_on`); not a section's setting.
SWITCH_VARIABLE = "ASSAY_CAPTURE"


class SettingsError(ValueError):
    """A setting has an unknown name or a value that does not fit. The message names it and says what would fit."""


class Section(BaseModel):
    """One section of settings."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def _exact(value: Any) -> Any:
    if value in ("true", "false"):
        return value == "true"
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("must be exactly true or false")


#: A switch where a typo must never pass for an answer.
ExactBool = Annotated[bool, BeforeValidator(_exact)]


class RedisSettings(Section):
    """Redis or Valkey, 7.0 or newer, with append-only files on."""

    url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="Address, with user and password if any. `rediss://` for TLS.",
    )
    mode: Literal["standalone", "cluster", "sentinel"] = Field(
        "standalone",
        description="What is at the address: one Redis; nodes of a Redis Cluster; or Sentinels, which know the master. "
        "The last two may be several, separated by commas: `redis://user:password@host-1:6379,host-2:6379`.",
    )
    sentinel_master: str = Field("assay", description="What the Sentinels call the master.")
    sentinel_user: str | None = Field(
        None, examples=["assay"], description="User of the Sentinels; the address's user is that of the master."
    )
    sentinel_password_file: Path | None = Field(
        None, examples=["/etc/assay/password"], description="File that holds the Sentinels' password, if they ask one."
    )
    replicas: int = Field(
        0,
        ge=0,
        le=9,
        description="Replicas that must have an event before the SDK counts it as handed over; 0 waits for none.",
    )
    password_file: Path | None = Field(
        None,
        examples=["/etc/assay/password"],
        description="File that holds the password, instead of one in the address.",
    )
    tls_ca_file: Path | None = Field(
        None, examples=["/etc/assay/ca.pem"], description="CA bundle that the server's certificate must chain to."
    )
    tls_cert_file: Path | None = Field(None, examples=["/etc/assay/client.pem"], description="Client certificate.")
    tls_key_file: Path | None = Field(None, examples=["/etc/assay/client.key"], description="Client key.")
    shards: int = Field(
        1,
        ge=1,
        le=16,
        description="How many shards each stream has. The same everywhere; changing it needs drained streams.",
    )
    connect_timeout_s: float = Field(2.0, gt=0, description="Seconds to wait for a connection.")
    command_timeout_s: float = Field(10.0, gt=0, description="Seconds to wait for an answer.")


class StoreSettings(Section):
    """ClickHouse over HTTP: the embedded store or a server, 24.10 or newer."""

    url: str = Field("http://127.0.0.1:8123", description="Address. `https://` for TLS.")
    user: str = Field("default", description="User name.")
    password: SecretStr = Field(SecretStr(""), description="Password.")
    password_file: Path | None = Field(
        None, examples=["/etc/assay/password"], description="File that holds the password, instead of the one above."
    )
    tls_ca_file: Path | None = Field(
        None, examples=["/etc/assay/ca.pem"], description="CA bundle that the server's certificate must chain to."
    )
    database: str = Field(
        "assay", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Database of the views that people query."
    )
    base_database: str = Field(
        "assay_base", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", description="Database of the tables behind them."
    )
    timeout_s: float = Field(60.0, gt=0, description="Seconds to wait for an answer.")
    uid: int = Field(
        65525,
        ge=1,
        lt=2**32 - 1,
        description="Numeric user and group id that the embedded store takes when root runs `assay up` on a kernel without Landlock. "
        "Use one that nothing else on the machine has.",
    )


class CaptureSettings(Section):
    """The producers' SDK."""

    enabled: ExactBool | None = Field(
        None,
        examples=[True],
        description="True is on, false is off, unset leaves it to `ASSAY_CAPTURE=1`. In the file only.",
    )
    scrub_pii: ExactBool = Field(
        True, description="Scrub personal data. Off only if exactly false, whatever the capture switch says."
    )
    scrub: Literal["service", "producer"] = Field(
        "service",
        description="Where text is scrubbed first: by the scrubber service, or already in the producer, before it leaves the process. "
        "The latter needs the extra `assay-capture[scrub]`.",
    )
    project: Project = Field("default", description="The tenant every event carries.")
    service: Service | None = Field(
        None, examples=["my-service"], description="The producer's name; the OpenTelemetry `service.name`."
    )
    queue_entries: int = Field(10_000, ge=1, description="Events the SDK holds in memory before it drops (entries).")
    queue_bytes: int = Field(64 * 1024 * 1024, ge=1024, description="The same bound in bytes.")
    batch_entries: int = Field(500, ge=1, description="Most events sent to Redis in one round trip.")
    flush_interval_ms: int = Field(50, ge=1, description="Longest time an event waits for its batch, in milliseconds.")
    exit_deadline_s: float = Field(5.0, ge=0, description="Seconds the SDK may take at exit to send what it holds.")
    close_on_sigterm: ExactBool = Field(
        False,
        description="Whether SIGTERM, in a program without a handler for it, sends what the SDK holds before it ends the process.",
    )
    durability: Literal["memory", "spool", "fsync"] = Field(
        "spool",
        description="Where events wait while Redis is away: memory only, a spool on disk, or a spool with fsync per batch.",
    )
    spool_dir: Path | None = Field(
        None,
        examples=["/var/lib/assay-spool"],
        description="Directory of the spool, where each user has one of their own; default: `assay-spool` in the user's state directory.",
    )
    spool_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="Largest spool for one Redis, in bytes; beyond it events are dropped and counted.",
    )
    spool_adopt: str = Field(
        "",
        examples=["redis.example-6379-0-9f86d081884c7d65"],
        description="What waits in the spool for another Redis and is to be sent to this one: names of directories in "
        "`assay-spool-UID`, separated by commas; `unnamed` for what the version before left; `all`.",
    )
    high_water_entries: int = Field(
        1_000_000, ge=1, description="Above this many unscrubbed entries in Redis, events wait in the spool."
    )
    high_water_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="The same for the memory that unscrubbed entries take there, in bytes, for each shard.",
    )


class DeliverySettings(Section):
    """Consumer groups, common to every service."""

    consumer: str | None = Field(
        None,
        examples=["scrubber-1"],
        description="This process's consumer name; default: host and process number. A lasting name resumes unfinished entries at once.",
    )
    visibility_timeout_s: float = Field(
        30.0, gt=0, description="Seconds after which another consumer may take over an unfinished entry."
    )
    max_deliveries: int = Field(
        5, ge=1, description="Deliveries after which an entry that fails by its own fault is given up."
    )
    history_entries: int = Field(
        10_000, ge=0, description="Stored entries kept in Redis for live tail (entries), within `held_bytes`."
    )
    held_bytes: int = Field(
        96 * 1024 * 1024,
        ge=1024,
        description="Most bytes of each stream that stay after the writer has stored them: for live tail, and for a judge, drift "
        "or notifier that stands still.",
    )
    high_water_entries: int = Field(
        1_000_000,
        ge=1,
        description="Above this many entries that the writer has still to store, the scrubber waits; for each shard.",
    )
    high_water_bytes: int = Field(
        256 * 1024 * 1024,
        ge=1024,
        description="The same for the memory that they take in Redis, in bytes.",
    )
    watermark_replicas: int = Field(
        1,
        ge=0,
        description="Behind Sentinels, replicas that must have a watermark before exports go by it; elsewhere `redis.replicas` counts.",
    )
    dead_bytes: int = Field(
        64 * 1024 * 1024,
        ge=1024,
        description="Most bytes of Redis's memory for given-up entries, for each shard; beyond it they stay unfinished in their stream.",
    )
    dead_days: float = Field(7.0, gt=0, description="Days that given-up entries are kept.")
    lag_limit_entries: int = Field(
        100_000, ge=1, description="More unread entries than this and `/readyz` says not ready."
    )


class ScrubberSettings(Section):
    """The scrubber service."""

    batch_entries: int = Field(500, ge=1, le=5_000, description="Most entries scrubbed in one step.")
    scrub_slugs: ExactBool = Field(
        False,
        description="Scrub slugs, source ids and context ids too; unless true they pass as they are, as the producer's own identifiers.",
    )
    policy_file: Path | None = Field(
        None,
        examples=["/etc/assay/policy.toml"],
        description="What to do with which findings, by project: a TOML file, read again when it changes. Unset: redact all.",
    )
    hash_key: SecretStr | None = Field(
        None,
        examples=["at-least-sixteen-bytes"],
        description="Key of the action `hash`, 16 bytes or more. The same key gives the same hashes; without it they say nothing.",
    )
    hash_key_file: Path | None = Field(
        None, examples=["/etc/assay/hash-key"], description="File that holds the key, instead of the one above."
    )
    vendor_keys: ExactBool = Field(
        False,
        description="Look for keys of some 400 more vendors with kingfisher; needs the extra `assay-scrubber[kingfisher]`.",
    )
    port: int = Field(9101, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class WriterSettings(Section):
    """The writer service. A batch is written when the first of its three bounds is reached."""

    batch_rows: int = Field(5_000, ge=1, le=500_000, description="Rows in one insert.")
    batch_bytes: int = Field(6 * 1024 * 1024, ge=1024, description="Bytes in one insert.")
    batch_age_ms: int = Field(500, ge=1, description="Longest wait of the oldest row, in milliseconds.")
    port: int = Field(9102, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class DriftSettings(Section):
    """The drift service. Windows and thresholds of its alerts; time is that of the samples."""

    tolerance: float = Field(
        0.03,
        ge=0,
        lt=1,
        allow_inf_nan=False,
        description="Relative drop from the baseline that is well: it raises no alert, and ends one.",
    )
    critical_ratio: float = Field(
        0.9, gt=0, lt=1, description="Share of the baseline below which a drop with evidence is critical."
    )
    clean_evaluations: int = Field(
        24, ge=1, description="Clean evaluations in a row, one an hour, until an episode is recovering."
    )
    cooldown_hours: float = Field(24.0, ge=0, description="Hours after a resolution before the same series may alert.")
    run_length_days: float = Field(
        365.0,
        gt=0,
        description="Wanted mean time between false alarms, over all series of all metrics together, in days.",
    )
    critical_samples: int = Field(20, ge=2, description="Samples since the change that a critical drop needs.")
    learning_samples: int = Field(300, ge=20, description="Samples a series needs for its first baseline.")
    learning_days: float = Field(7.0, ge=0, description="Days a series needs for its first baseline.")
    baseline_days: int = Field(
        30, ge=1, le=60, description="Days of a full baseline; then it is fixed until acknowledged."
    )
    rule: Literal["off", "warn", "critical"] = Field(
        "warn",
        description="What the plain rule raises: a day's mean fell more than 10 % below the rolling or fixed baseline, beyond chance.",
    )
    rule_drop: float = Field(0.1, gt=0, lt=1, description="Drop of the plain rule, as a share of the baseline.")
    rule_hours: int = Field(24, ge=1, le=48, description="Window of the plain rule, in hours.")
    rule_samples: int = Field(100, ge=1, description="Samples the plain rule needs in its window.")
    ks_effect: float = Field(
        0.1, ge=0, le=1, description="Kolmogorov-Smirnov distance that a change of retrieval scores must have to count."
    )
    query_reference_days: int = Field(14, ge=7, le=60, description="Days of queries that later ones are compared with.")
    query_samples: int = Field(100, ge=10, description="Queries that a day needs to be compared.")
    query_deviations: float = Field(
        5.0, gt=0, description="Standard deviations of the shuffled days by which queries must differ."
    )
    silence_hours: int = Field(6, ge=1, le=24, description="Window in which judged answers are missed, in hours.")
    silence_ratio: float = Field(0.5, gt=0, lt=1, description="Share of what was expected below which it is silence.")
    judge_error_ratio: float = Field(0.05, gt=0, lt=1, description="Share of judge errors in a day that is too much.")
    lag_entries: int = Field(100_000, ge=1, description="Unread entries of a stream that are too many.")
    watermark_minutes: float = Field(15.0, gt=0, description="Age of the watermark that is too much, in minutes.")
    kappa_min: float = Field(
        0.6,
        ge=-1,
        le=1,
        description="Agreement of the judge with people (lower end of Cohen's kappa) without which no metric pages.",
    )
    tnr_min: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Share of bad answers that the judge must surely find (lower end of the TNR) for a metric to page.",
    )
    calibration_labels: int = Field(50, ge=2, description="Labels that a calibration needs for a metric to page.")
    calibration_bad: int = Field(
        10, ge=1, description="Answers that people call bad which a calibration needs for a metric to page."
    )
    page_uncalibrated: bool = Field(False, description="Let metrics of a judge without calibration page as well.")
    day_minutes: float = Field(
        1440.0,
        gt=0,
        description="Length of a day, in minutes, and of everything that is counted in days or hours; less only to simulate.",
    )
    batch_entries: int = Field(500, ge=1, le=2_000, description="Most entries counted in one step.")
    port: int = Field(9104, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class NotifierSettings(Section):
    """The notifier service: whom it tells of alerts. Addresses are separated by blanks; in a file, one a line."""

    alertmanager_urls: SecretStr = Field(
        SecretStr(""),
        description="Prometheus Alertmanager, such as `http://alertmanager:9093`; every member of a cluster. Empty: none.",
    )
    alertmanager_urls_file: Path | None = Field(
        None, examples=["/etc/assay/alertmanager-urls"], description="File that holds them instead."
    )
    alertmanager_token_file: Path | None = Field(
        None, examples=["/etc/assay/alertmanager-token"], description="File with a bearer token for Alertmanager."
    )
    webhook_urls: SecretStr = Field(
        SecretStr(""), description="Receivers of signed webhooks (HMAC-SHA256). Empty: none."
    )
    webhook_urls_file: Path | None = Field(
        None, examples=["/etc/assay/webhook-urls"], description="File that holds them instead."
    )
    webhook_secret: SecretStr = Field(
        SecretStr(""), description="What webhooks are signed with: 24 bytes or more, or `whsec_` and base64."
    )
    webhook_secret_file: Path | None = Field(
        None, examples=["/etc/assay/webhook-secret"], description="File that holds it instead."
    )
    apprise_urls: SecretStr = Field(
        SecretStr(""), description="Apprise addresses: Slack, PagerDuty, Teams, e-mail and others. Empty: none."
    )
    apprise_urls_file: Path | None = Field(
        None, examples=["/etc/assay/apprise-urls"], description="File that holds them instead."
    )
    tls_ca_file: Path | None = Field(
        None,
        examples=["/etc/assay/ca.pem"],
        description="CA bundle for the certificates of Alertmanager and webhooks; unset: the system's.",
    )
    timeout_s: float = Field(5.0, gt=0, le=60, description="Seconds to wait for a receiver's answer.")
    group_wait_s: float = Field(
        5.0, ge=0, le=600, description="Seconds to wait for more alerts, to tell people of them in one notice."
    )
    resend_s: float = Field(
        60.0, gt=0, description="Seconds between two posts that keep an open alert alive in Alertmanager."
    )
    expire_s: float = Field(
        900.0, gt=0, description="Seconds after which Alertmanager takes an alert for over when nobody keeps it alive."
    )
    give_up_h: float = Field(
        24.0, gt=0, description="Hours after which a notice that a receiver does not take becomes a dead letter."
    )
    port: int = Field(9105, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


def _single(value: Any) -> Any:
    if value == "openai-batch":
        raise ValueError("only Anthropic's API is used in batches; write openai, which is called answer by answer")
    return value


class JudgeSettings(Section):
    """The judge service. Without a key it judges with the lexical baseline, offline and for nothing."""

    backend: Annotated[
        Literal["auto", "anthropic", "anthropic-batch", "openai", "lexical"], BeforeValidator(_single)
    ] = Field(
        "auto",
        description="Who judges: Anthropic's API, its message batches (half the price, within a day), any API that speaks OpenAI's chat "
        "completions (`openai`; a model on this machine too), or the lexical baseline. `auto`: Anthropic's API when a key is set, else "
        "the baseline.",
    )
    api_key: SecretStr = Field(SecretStr(""), description="Key of the API.")
    api_key_file: Path | None = Field(
        None, examples=["/etc/assay/anthropic-key"], description="File that holds the key, instead of the one above."
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
        description="`openai`: price of a million tokens read, in US dollars; 0 for a model of your own.",
    )
    price_output_usd: float | None = Field(
        None, ge=0, allow_inf_nan=False, examples=[0.6], description="`openai`: price of a million tokens written."
    )
    json_mode: Literal["json_schema", "json_object", "none"] = Field(
        "json_schema",
        description="`openai`: how the API is asked for JSON: by its schema, as any JSON, or by the prompt alone.",
    )
    effort: Literal["low", "medium", "high"] = Field("low", description="The effort the model is asked for.")
    rules_file: Path | None = Field(
        None,
        examples=["/etc/assay/judge.yaml"],
        description="YAML with checks, boosts and prices of your own; unset takes those that come with Assay.",
    )
    base_rate: float = Field(
        0.05, gt=0, le=1, allow_inf_nan=False, description="Share of answers in the unbiased base stream."
    )
    base_floor_per_day: int = Field(
        50, ge=0, description="Base samples a quiet project gets in a day all the same, as far as it has answers."
    )
    salt: SecretStr = Field(
        SecretStr(""),
        description="What the sample is drawn with; who knows it can foretell which events are judged. Empty: drawn once for each "
        "installation, and kept in Redis.",
    )
    budget_usd_per_day: float = Field(
        1.0,
        ge=0,
        allow_inf_nan=False,
        description="Most that judging may cost in a day (UTC), in US dollars, for each project.",
    )
    budget_usd_per_day_all_projects: float = Field(
        10.0,
        ge=0,
        allow_inf_nan=False,
        description="Most that judging may cost in a day (UTC), in US dollars, for all projects together; with several shards each shard "
        "has an equal part of it. Producers choose project names, so the number of projects has no bound of its own.",
    )
    requests_per_minute: int = Field(
        1_000, ge=1, description="Most requests to the API in a minute, over all replicas and projects."
    )
    tokens_per_minute: int = Field(
        400_000, ge=1_000, description="Most tokens in a minute, read and written, over all replicas and projects."
    )
    concurrency: int = Field(8, ge=1, le=256, description="Answers judged at the same time by one process.")
    deadline_s: float = Field(
        90.0, gt=0, le=600, allow_inf_nan=False, description="Seconds for one answer, tries and pauses included."
    )
    request_timeout_s: float = Field(
        45.0, gt=0, le=600, allow_inf_nan=False, description="Seconds to wait for one reply of the API."
    )
    max_input_bytes: int = Field(
        200_000,
        ge=1_000,
        description="Largest question, answer and passages together, in bytes; a larger one is a judge error.",
    )
    max_output_tokens: int = Field(4_096, ge=256, le=32_000, description="Longest verdict, in tokens.")
    batch_wait_s: float = Field(
        3_600.0,
        gt=0,
        allow_inf_nan=False,
        description="`anthropic-batch`: longest an answer waits for its batch to be sent, in seconds.",
    )
    batch_requests: int = Field(
        1_000, ge=1, le=100_000, description="`anthropic-batch`: answers that make a batch at once."
    )
    record_days: float = Field(
        8.0,
        gt=0,
        allow_inf_nan=False,
        description="Days for which it is known which answers were judged; what comes again later is judged anew.",
    )
    anchors_every_days: float = Field(
        7.0, ge=0, allow_inf_nan=False, description="Days between two rounds over the fixed anchor cases; 0 for none."
    )
    port: int = Field(9103, ge=0, le=65_535, description="Port of `/healthz`, `/readyz`, `/metrics`.")


class EvalsSettings(Section):
    """The nightly evaluation, `assay eval nightly`. Nothing runs without a dataset and a target."""

    dataset: Path | None = Field(None, examples=["/etc/assay/golden.jsonl"], description="Golden dataset to ask.")
    target: str | None = Field(
        None,
        examples=["http://search:8080/v1/search"],
        description="What is asked: `http://host/path`, `module:function`, or `command: program --flag`.",
    )
    hour: int = Field(3, ge=0, le=23, description="Hour of the day (UTC) from which on it may run, once a day.")
    baseline: str | None = Field(
        None,
        examples=["main"],
        description="Run to compare with, by its folder, name or id; unset: the last night that passed.",
    )
    rules: Path | None = Field(
        None,
        examples=["/etc/assay/rules.toml"],
        description="Rules that the night is held against: scorers, thresholds, floors and slices; `--rules` wins.",
    )
    runs_dir: str = Field("runs", description="Folder that holds the runs.")
    project: str = Field(
        "default", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Tenant whose system is evaluated."
    )
    judge: Literal["none", "lexical", "anthropic", "openai"] = Field(
        "none",
        description="Who judges the answers too; `anthropic` needs `judge.api_key`, `openai` what `[judge]` says with that backend.",
    )
    budget_usd: float = Field(
        1.0, ge=0, allow_inf_nan=False, description="Most that judging one night may cost, in US dollars."
    )
    deadline_minutes: float = Field(
        120.0, gt=0, le=1_200, allow_inf_nan=False, description="Minutes after which an attempt is given up."
    )


class RetentionSettings(Section):
    """How long tables keep rows. `prune` removes earlier."""

    days: int = Field(90, ge=1, le=36_500, description="Days a row is kept, unless its project says otherwise.")
    projects: dict[str, int] = Field(
        default_factory=dict,
        examples=[{"my-project": 30}],
        description="Days by project. In the file only: `[retention.projects]`.",
    )


class TelemetrySettings(Section):
    """Assay's own observability."""

    host: str = Field("127.0.0.1", description="Address that health and metrics listen on.")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level that is logged."
    )
    log_format: Literal["json", "text"] = Field("json", description="One JSON object a line, or text for people.")
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
    scrubber: ScrubberSettings = ScrubberSettings()
    writer: WriterSettings = WriterSettings()
    drift: DriftSettings = DriftSettings()
    notifier: NotifierSettings = NotifierSettings()

    judge: JudgeSettings = JudgeSettings()
    evals: EvalsSettings = EvalsSettings()
    retention: RetentionSettings = RetentionSettings()
    telemetry: TelemetrySettings = TelemetrySettings()


#: Where the secrets of a section are sent, by what decides it; and these secrets. `OTEL_...` are variables of OpenTelemetry's own.
_SENT_TO = (
    ("redis", ("url", "tls_ca_file"), ("password_file", "sentinel_password_file")),
    ("store", ("url", "tls_ca_file"), ("password", "password_file")),
    ("judge", ("base_url", "backend"), ("api_key", "api_key_file")),
    ("notifier", ("alertmanager_urls", "alertmanager_urls_file", "tls_ca_file"), ("alertmanager_token_file",)),
    ("telemetry", ("otlp_endpoint",), ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")),
)


def variables(model: type[Settings] = Settings) -> dict[str, tuple[str, str]]:
    """Every environment variable and the (section, name) it sets."""
    found = {}
    for section, field in model.model_fields.items():
        assert isinstance(field.annotation, type)
        assert issubclass(field.annotation, Section)
        for name in field.annotation.model_fields:
            if (section, name) not in {("capture", "enabled"), ("retention", "projects")}:
                found[f"ASSAY_{section}_{name}".upper()] = (section, name)
    return found


def settings_from(
    environment: Mapping[str, str],
    file: str = "",
    *,
    file_name: str = "assay.toml",
    strict: bool = True,
    implicit: bool = False,
) -> Settings:
    """Settings from an environment and the text of a settings file.

    `strict` also refuses unknown `ASSAY_*` variables; the SDK is not strict, since a producer's host may hold settings of newer services.
    `implicit`: nobody named the file, it was just there, perhaps in a checkout of somebody else's code. Then it does not decide where
    secrets go that it does not hold itself. Raises `SettingsError`.
    """
    try:
        values: dict[str, Any] = tomllib.loads(file)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file_name} is not valid TOML: {error}") from None
    known = variables()
    for section in Settings.model_fields:
        if not isinstance(values.get(section, {}), dict):
            raise SettingsError(f"{file_name}: {section} is a section: write [{section}] and its settings below")
    if implicit:
        _expect_no_redirection(values, environment, file_name)
    for variable, text in environment.items():
        if variable in known:
            section, name = known[variable]
            values.setdefault(section, {})[name] = text
        elif strict and variable.startswith("ASSAY_") and variable not in {FILE_VARIABLE, SWITCH_VARIABLE}:
            raise SettingsError(f"unknown setting {variable}{_suggestion(variable, known)}")
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        raise SettingsError("\n".join(_explain(problem, file_name) for problem in error.errors())) from None


def capture_on(settings: CaptureSettings, environment: Mapping[str, str]) -> bool:
    """The capture switch: the file's `capture.enabled` decides; unset, `ASSAY_CAPTURE` exactly `1` is on; otherwise off."""
    if settings.enabled is not None:
        return settings.enabled
    return environment.get(SWITCH_VARIABLE) == "1"


def _expect_no_redirection(file: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str], name: str) -> None:
    """Raise `SettingsError` if a file that nobody named says where a secret is sent that comes from elsewhere."""
    for section, addresses, secrets in _SENT_TO:
        given = file.get(section, {})
        decides = [each for each in addresses if each in given and _variable(section, each) not in environment]
        # Of the backends only this one has another address than a key without a name is for.
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
                f"the secret would go where ./{name} says. Set {_variable(section, decides[0])}, or, if you trust the file, "
                f"name it: {FILE_VARIABLE}={name}"
            )


def _variable(section: str, name: str) -> str:
    return f"ASSAY_{section}_{name}".upper()


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; the known ones are {', '.join(sorted(known))}"


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
