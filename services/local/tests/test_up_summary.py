"""What people read after a demo run."""

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay_access.settings_files import Ports
from assay_local.demo_report import Report, moment, quality_summary, reconciled, start_again, summary, where_to_look
from assay_local.probes import Lag, Quality, Run
from assay_schema.ids import first_row_at
from tests.support.rendered import shown

REPORT = Report({"retrieval": 1200, "answer": 1200, "feedback": 90}, {"email": 30, "jwt": 2}, 600, 3.0)
RUN = Run(
    stored={"retrieval": 1198, "answer": 1200, "feedback": 90},
    failed={"check_violation": 2},
    families={"email": 66, "us_ssn": 1},
    p50_ms=612.4,
    p99_ms=1480.6,
)


def test_the_summary_names_every_count() -> None:
    text = shown(
        summary(REPORT, RUN, Lag(0, 1, 2, 6, 5), 7_000_000_000_000, {"redis": 12_000_000, "store": 300_000_000})
    )
    for expected in (
        "600 questions, 3.0 s",
        "1,198",
        "failed: check_violation",
        "2,490  all accounted for",
        "us_ssn",
        "capture 0, events 1, failures 2",
        "p50 612 ms, p99 1,481 ms",
        "312 MB: redis 12 MB, store 300 MB",
    ):
        assert expected in text


def test_an_event_that_is_missing_or_too_many_is_a_finding() -> None:
    assert reconciled(REPORT, RUN)
    for change, told in ((-1, "+1 not accounted for"), (1, "-1 not accounted for")):
        run = Run(stored={**RUN.stored, "feedback": 90 + change}, failed=RUN.failed)
        assert not reconciled(REPORT, run)
        assert told in shown(summary(REPORT, run, Lag(0, 0, 0, 0, 0), 0, {}))


def test_the_summary_does_without_any_rows() -> None:
    text = shown(summary(Report({}, {}, 0, 0.0), Run(), Lag(0, 0, 0, 0, 0), 0, {}))
    assert "nothing yet" in text
    assert "capture to stored" not in text


def test_what_the_producer_could_not_send_is_told() -> None:
    stats = {"dropped": {"queue_full": 3}, "queue_entries": 0, "spool_bytes": 2048}
    report = Report({"answer": 3}, {}, 1, 1.0, stats)
    assert "3 dropped (queue_full), 2,048 bytes in the spool" in shown(
        summary(report, Run(), Lag(0, 0, 0, 0, 0), 0, {})
    )


def test_the_producers_report_is_read_from_its_last_line() -> None:
    line = {"captured": {"answer": 2}, "planted": {}, "questions": 1, "seconds": 0.5, "stats": {"dropped": {}}}
    report = Report.parse(json.dumps(line))
    assert report
    assert (report.total, report.questions, report.stats) == (2, 1, {"dropped": {}})


@pytest.mark.parametrize("line", ["", "Traceback", "[]", "{}", "3"])
def test_what_is_no_report_is_none(line: str) -> None:
    assert Report.parse(line) is None


@pytest.mark.parametrize("data", [Path("data"), Path("/srv/it's here/data")])
def test_the_commands_to_copy_are_valid_for_a_shell_and_name_the_data_directory(data: Path) -> None:
    lines = shown(where_to_look(data, Ports.from_base(9100))).splitlines()
    commands = [line.strip() for line in lines if line.startswith("    ") and not line.strip().endswith("/logs/")]
    assert len(commands) == 12
    for command in commands:
        subprocess.run(["sh", "-n", "-c", command], check=True)
        if command.startswith("assay") and data != Path("data"):
            words = shlex.split(command)
            assert words[words.index("--data") + 1] == str(data)


def test_after_a_run_that_stops_the_commands_are_headed_by_how_to_start_again() -> None:
    ports = Ports.from_base(9100)
    secure = shown(where_to_look(Path("data"), ports, gateway_cert=Path("own cert.pem")))
    assert f"-S --cacert 'own cert.pem' https://127.0.0.1:{ports.gateway_http}/v1/events" in secure
    stopped = shown(where_to_look(Path("data"), ports, stopped="make run")).splitlines()
    assert stopped[1].strip() == "the system is stopped; to use these, start it again with `make run`"
    assert "stopped" not in shown(where_to_look(Path("data"), ports))


@pytest.mark.parametrize(
    ("data", "base", "by_make", "command"),
    [
        ("data", 9100, True, "make run"),
        ("data", 9200, True, "make run PORT_BASE=9200"),
        ("data", 9100, False, "assay up"),
        ("/srv/it's/data", 9200, True, "assay up --data '/srv/it'\"'\"'s/data' --port-base 9200"),
    ],
)
def test_the_command_to_start_again_names_the_same_data_and_ports(
    data: str, base: int, by_make: bool, command: str
) -> None:
    assert start_again(Path(data), Ports.from_base(base), "assay", by_make=by_make) == command


def test_a_service_of_ones_own_is_run_by_the_interpreter_that_has_the_sdk() -> None:
    text = shown(where_to_look(Path("data"), Ports.from_base(9100), python=".venv/bin/python"))
    assert "ASSAY_CONFIG=data/secrets/producer.toml .venv/bin/python your_service.py" in text


def test_a_watermark_is_told_as_a_time() -> None:
    assert moment(0) == "nothing yet"
    assert moment(1) == "2024-01-01 00:00:00Z"


def test_a_watermark_ahead_of_the_clock_is_told_as_now() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    told = datetime.strptime(moment(first_row_at(int(before.timestamp() * 1_000) + 3_600_000)), "%Y-%m-%d %H:%M:%S%z")
    assert before <= told <= datetime.now(UTC)


def test_quality_tells_what_was_judged_by_whom_and_which_alerts_came() -> None:
    found = Quality({"scored": 80, "abstained": 4, "not_sampled": 16}, 0.6123, "lexical")
    alert = {"alert_id": "a", "state": "critical", "summary": "Faithfulness fell.", "stored_ms": "1700000009000"}
    text = shown(quality_summary(100, found, [alert], degraded_ms=1_700_000_000_000, arrived={"a"}))
    for expected in (
        "84 of 100 answers: 80 scored, 4 abstained",
        "0.612 (lexical baseline: words, not meaning)",
        "at 22:13:20Z",
        "alert critical",
        "Faithfulness fell., 9 s after; in Alertmanager",
    ):
        assert expected in text
    assert "in Alertmanager" not in shown(quality_summary(100, found, [alert], arrived=set()))


def test_quality_says_that_only_a_sample_is_judged() -> None:
    found = Quality({"ok": 79, "not_sampled": 342}, 0.9, "lexical")
    assert "a sample: judge.base_rate" in shown(quality_summary(421, found, []))
    assert "a sample" not in shown(quality_summary(79, Quality({"ok": 79}, 0.9, "lexical"), []))


def test_quality_does_without_scores_and_alerts() -> None:
    text = shown(quality_summary(0, Quality(), []))
    assert "0 of 0 answers" in text
    assert "mean faithfulness" not in text
    assert re.search(r"alerts\s+│ none", text)
