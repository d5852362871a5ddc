"""Generate `docs/tables.md` from the migrations: every view with its columns, and the named queries.

`python -m docs.generate.table_reference` prints it; `--write` writes it to docs/, `--check` exits 1 if that file is
outdated.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from assay_runtime.migrate import migrations
from assay_runtime.queries import Parameter, named_queries
from docs.generate.keep import keep
from docs.generate.table_wording import reworded

DOCUMENT = Path(__file__).parents[2] / "docs" / "tables.md"

_VIEW = re.compile(
    r"^CREATE (?:VIEW IF NOT EXISTS|OR REPLACE VIEW) `assay`\.(\w+)\n\((.*?)\n\)\n.*?\nCOMMENT '(.*?)'$", re.DOTALL
)
_COLUMN = re.compile(r"^    (\w+) (.+?) COMMENT '(.*)',?$")
_TABLE = re.compile(r"^CREATE TABLE IF NOT EXISTS `assay_base`\.(\w+)\n\((.*?)\n\)\n(.*)$", re.DOTALL)
_CONSTRAINT = re.compile(r"^    CONSTRAINT (\w+) CHECK (.+?),?$", re.MULTILINE)
_INDEX = re.compile(r"^    INDEX \w+ (\w+) TYPE (\w+)", re.MULTILINE)

_INTRODUCTION = """# Tables

Made from the migrations by `python -m docs.generate.table_reference --write`. In the store, `DESCRIBE assay.candidates` lists the same
columns.

Query the views in the database `assay`: they have one row per event, also after redeliveries (they read with FINAL). All times are UTC.
For hours or days of traffic, query the counts in `rollup_minute`, `rollup_hour` and `rollup_day`, which takes a few thousand rows.
Filter on `event_time` (other days and hours are skipped) and on `project`. A lookup by `event_id` is fastest with the time inside it:

```sql
SELECT * FROM assay.candidates
WHERE event_id = {event:UUID} AND event_time = UUIDv7ToDateTime({event:UUID}, 'UTC')
```

To find the events of a trace, or earlier answers to a question, name the expression that the tables have an index on. The first is for
`candidates`, `answers`, `tool_calls` and `server_events`, the second for `candidates` and `answers`; it ignores case and repeated white
space:

```sql
SELECT * FROM assay.answers WHERE substring(traceparent, 4, 32) = {trace_id:String}
```

```sql
SELECT * FROM assay.candidates
WHERE cityHash64(lowerUTF8(trimBoth(replaceRegexpAll(query, '[[:space:]]+', ' '))))
    = cityHash64(lowerUTF8(trimBoth(replaceRegexpAll({question:String}, '[[:space:]]+', ' '))))
```

The tables behind the views are in `assay_base` (ReplacingMergeTree, a partition for each day of `event_time`); only Assay writes there.
A row is kept for `retention.days` from `created_at`, unless `[retention.projects]` has its project; `assay migrate` applies a change.

The engine refreshes the rollups itself, from the views, never from inserts. Each minute it recounts every minute that received rows
since then, including old events: redelivered, re-cut and replayed batches count once. Each hour it compares rollups and tables, and
recounts differences: deleted and expired rows are gone from the rollups within two hours.
For latencies of days, read whole days from `rollup_day` and only the hours before the first of them from `rollup_hour`, as the query
`tools` does: a week has a tenth of the buckets by day.
Add up rows with `sum` and maps with `sumMap`. Percentiles cannot be added; compute them from the sum of histograms:

```sql
SELECT project, sum(events) AS events,
    quantilesExactWeightedArray(0.5, 0.95, 0.99)(mapKeys(latency_us), mapValues(latency_us)) AS p50_p95_p99_us
FROM assay.rollup_hour
WHERE hour >= now() - INTERVAL 7 DAY AND kind = 'retrieval'
GROUP BY project
```
"""


@dataclass(frozen=True)
class View:
    """A view as defined by the migrations."""

    name: str
    comment: str
    columns: tuple[tuple[str, str, str], ...]


def views() -> list[View]:
    """Return the views in the order of their migrations, each by its last definition."""
    found = {}
    for statement in _statements():
        if match := _VIEW.match(statement):
            columns = (_COLUMN.match(line) for line in match[2].splitlines())
            found[match[1]] = View(
                match[1],
                reworded(match[3]),
                tuple((column[1], column[2], reworded(column[3])) for column in columns if column),
            )
    return list(found.values())


def document() -> str:
    """Return the text of docs/tables.md."""
    parts = [_INTRODUCTION]
    rules = {match[1]: match for statement in _statements() if (match := _TABLE.match(statement))}
    for view in views():
        parts.append(f"## {view.name}\n\n{view.comment}\n\n| column | type | meaning |\n|---|---|---|")
        parts += [f"| `{name}` | `{type_}` | {comment} |" for name, type_, comment in view.columns]
        if table := rules.get(view.name):
            order = re.search(r"ORDER BY \(?(.*?)\)?$", table[3], re.MULTILINE)
            assert order
            parts.append(f"\nSorted by `{order[1]}`.")
            if indexes := _INDEX.findall(table[2]):
                parts[-1] += " Indexes: " + ", ".join(f"`{column}` ({kind})" for column, kind in indexes) + "."
            if constraints := _CONSTRAINT.findall(table[2]):
                parts.append("Inserts are refused unless: " + "; ".join(f"`{rule}`" for _, rule in constraints) + ".")
        parts.append("")
    parts.append(
        "## Queries\n\n`assay query NAME` runs these; in any other client, run them in the database `assay`.\n"
    )
    parts.append("| name | answers | parameters |\n|---|---|---|")
    for query in named_queries().values():
        parameters = "<br>".join(
            f"`{parameter.name}` ({parameter.type}, default {_default(parameter)}): {parameter.meaning}"
            for parameter in query.parameters
        )
        parts.append(f"| `{query.name}` | {query.summary} | {parameters} |")
    return "\n".join(parts) + "\n"


def _default(parameter: Parameter) -> str:
    return f"`{parameter.default}`" if parameter.default else "empty"


def _statements() -> list[str]:
    return [statement for migration in migrations() for statement in migration.statements("assay_base", "assay")]


def main(arguments: list[str]) -> int:
    """Run the command."""
    return keep({DOCUMENT: document()}, arguments, "python -m docs.generate.table_reference")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
