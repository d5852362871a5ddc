"""Explain an episode: the services, models and sources whose stored samples changed."""

import shlex
from typing import TYPE_CHECKING
from uuid import UUID

from assay_operations.drift import parts as drift_parts
from assay_operations.errors import OperationError
from assay_schema.printable import printable

if TYPE_CHECKING:
    from assay_drift.attribution import Split
    from assay_operations.drift.parts import Episode
    from assay_runtime.store import Client as Store
    from assay_schema.settings import DriftSettings


def episode_named(alert_id: str) -> str:
    """Parse the id of an alert. Raises `OperationError`."""
    try:
        return str(UUID(alert_id))
    except ValueError:
        raise OperationError(
            "invalid", f"{printable(alert_id)!r} is not an alert id; `assay alerts list` shows the open ones"
        ) from None


def explained(store: "Store", alert_id: str, settings: "DriftSettings") -> list[str]:
    """Explain an episode by its parts, one per line. Raises `OperationError`."""
    from assay_schema.alert_actions import explain_command
    from assay_schema.alerts import AlertKind
    from assay_schema.scores import is_amount

    episode = drift_parts.episode_of(store, alert_id)
    if episode is None:
        raise OperationError("not_found", f"no episode {alert_id} is stored; `assay alerts list` shows the open ones")
    if not explain_command(alert_id, episode.kind, episode.metric):
        raise OperationError(
            "invalid",
            f"an episode of {episode.kind} has no parts to compare; its alert may have a query that shows more",
        )
    match episode.kind:
        case AlertKind.QUERY_DRIFT:
            return _queries(store, episode, settings)
        case AlertKind.RETRIEVAL_DRIFT:
            return _retrieval(store, episode, settings)
        case AlertKind.JUDGE_ERRORS:
            return _judge_errors(store, episode, settings)
        case _ if is_amount(episode.metric):
            return _amount(store, episode, settings)
    return _score(store, episode, settings)


def next_command(store: "Store", alert_id: str) -> str:
    """Return the command that shows the rows behind an episode since its change; '' if there is none."""
    from assay_schema.alert_actions import RETRIEVALS
    from assay_schema.alerts import AlertKind
    from assay_schema.scores import is_amount, things_of

    episode = drift_parts.episode_of(store, alert_id)
    if episode is None:
        return ""
    project = f"--param project={shlex.quote(episode.project)}"
    match episode.kind:
        case AlertKind.JUDGE_ERRORS:
            return "assay judge status"
        case AlertKind.RETRIEVAL_DRIFT:
            return f"assay query retrieval-scores {project}"
        case AlertKind.SCORE_DRIFT if is_amount(episode.metric):
            named = "slowest-retrievals" if episode.series in RETRIEVALS else "slowest-answers"
            return f"assay query {named} {project}" if episode.metric.startswith("latency") else ""
        case AlertKind.SCORE_DRIFT:
            until = f" --param until_ms={episode.until_ms}" if episode.until_ms else ""
            metric = f"--param metric={shlex.quote(episode.metric)}"
            return f"assay query worst-{things_of(episode.metric)} {metric} {project} --param since_ms={episode.since_ms}{until}"
    return ""


def _score(store: "Store", episode: "Episode", settings: "DriftSettings") -> list[str]:
    from assay_drift.series import Calendar
    from assay_schema.scores import things_of

    splits = drift_parts.score_splits(store, episode, Calendar.of(settings).day_ms)
    if not splits:
        return [f"{episode.metric} of {episode.project}: {_few(things_of(episode.metric))}"]
    return [f"{episode.metric} of {episode.project}: {splits[0].change:+.3g} since the change", *_told(splits)]


def _judge_errors(store: "Store", episode: "Episode", settings: "DriftSettings") -> list[str]:
    from assay_drift.series import Calendar

    splits = drift_parts.error_splits(store, episode, Calendar.of(settings).day_ms)
    return _shares(f"answers of {episode.project} on which the judge failed", "answers", splits)


def _amount(store: "Store", episode: "Episode", settings: "DriftSettings") -> list[str]:
    from assay_drift.messages import amount_text, limit_in
    from assay_drift.series import Calendar
    from assay_schema.alert_actions import RETRIEVALS
    from assay_schema.scores import QUANTILES

    limit, learned = limit_in(episode.summary), ""
    if limit is None:
        limit = drift_parts.limit_before(store, episode, settings, QUANTILES[episode.metric.rsplit("_", 1)[1]])
        learned = ", a limit recomputed from the first stored days before the change"
    what = f"{episode.metric} of {episode.project}"
    if limit is None:
        return [f"{what}: the alert names no limit, and too little is stored from before the change to recompute it"]
    things = "retrievals" if episode.series in RETRIEVALS else "answers"
    splits = drift_parts.amount_splits(store, episode, Calendar.of(settings).day_ms, limit)
    return _shares(f"{what} ({episode.series}), above {amount_text(episode.metric, limit)}{learned}", things, splits)


def _retrieval(store: "Store", episode: "Episode", settings: "DriftSettings") -> list[str]:
    from assay_drift.series import Calendar

    if episode.metric not in drift_parts.TOP:
        known = " and ".join(drift_parts.TOP)
        raise OperationError("invalid", f"the metric of this alert is not measured on retrieval scores; {known} are")
    splits = drift_parts.retrieval_splits(store, episode, Calendar.of(settings).day_ms)
    what = f"{episode.metric} of {episode.project} ({episode.series})"
    if not splits:
        return [f"{what}: {_few('retrievals')}"]
    first = splits[0]
    places = f"mean place {first.before:.3g} to {first.after:.3g} among the scores before the change"
    return [f"{what}: {places}", *_told(splits)]


def _queries(store: "Store", episode: "Episode", settings: "DriftSettings") -> list[str]:
    from assay_drift.attribution import percent
    from assay_drift.embedding import embedder
    from assay_drift.series import Calendar
    from assay_drift.topics import grown

    queries, texts = drift_parts.queries_of(store, episode, Calendar.of(settings).day_ms)
    name, embed = embedder()
    what = f"queries of {episode.project}"
    clusters = grown(queries, embed(texts)) if queries else None
    if clusters is None:
        return [f"{what}: too few are stored from before or since the change"]
    topics, splits = clusters
    other = "" if name == episode.series else f"; the alert used {episode.series}, which can form other clusters"
    lines = [f"{what}, by topic ({name}{other})"]
    for topic in topics:
        share = f"{topic.before:.1%} to {topic.after:.1%} of the queries"
        lines.append(f"  a cluster grew: {share}, for example {', '.join(topic.examples)}")
    if not topics:
        return [*lines, "  no cluster grew significantly"]
    lines.append(f"  to list the queries: assay drift history --queries --project {episode.project}")
    parts = [line for each in splits for line in each.told(percent)]
    if parts:
        lines.append("  of the queries in clusters that grew:")
    else:
        lines.append("  in no service or operation more than in others")
    return [*lines, *(f"    {line}" for line in parts)]


def _shares(what: str, things: str, splits: "list[Split]") -> list[str]:
    if not splits:
        return [f"{what}: {_few(things)}"]
    first = splits[0]
    change = f"{first.before:.1%} to {first.after:.1%} of the {things} since the change"
    return [f"{what}: {change}", *_told(splits, share=True)]


def _told(splits: "list[Split]", *, share: bool = False) -> list[str]:
    from assay_drift.attribution import number, percent

    lines = [f"  {line}" for split in splits for line in split.told(percent if share else number)]
    dimensions = _or([split.dimension for split in splits])
    return lines or [f"  no significant difference by {dimensions}, nor in their mix"]


def _or(names: list[str]) -> str:
    return " or ".join([part for part in (", ".join(names[:-1]), names[-1]) if part])


def _few(things: str) -> str:
    parts = "service, model and source" if things in ("answers", "sessions") else "service, operation and source"
    return f"too few stored {things}, or only one {parts}"
