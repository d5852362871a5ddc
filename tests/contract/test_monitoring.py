"""Alerts and dashboards speak of metrics that exist, and the tools that will read these files accept them."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from prometheus_client import REGISTRY

import assay_console
from assay_console.pages import PAGES
from assay_notifier.notice import labels
from assay_runtime import metrics
from assay_schema.alerts import AlertKind, AlertState, Severity
from assay_schema.failures import Reason
from assay_schema.settings import ConsoleSettings, DeliverySettings
from assay_schema.streams import STREAMS
from assay_store.metrics import Metrics as StoreMetrics
from tests.contract.compose_files import BASE, load
from tests.programs import needed
from tests.support.alert_samples import transition

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus/alerts.yml"
DASHBOARDS = sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
SERVICES = load(BASE)["services"]
#: Counted by `assay_runtime.delivery`.
OUTCOMES = {"forwarded", "stored", "failed", "buried", "passed_over", "expired"}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for path in DASHBOARDS for panel in json.loads(path.read_text())["panels"]]


def expressions() -> dict[str, str]:
    asked = {rule["alert"]: rule["expr"] for rule in rules()}
    return asked | {f"{p['title']} {t['refId']}": t["expr"] for p in panels() for t in p["targets"]}


def series() -> dict[str, set[str]]:
    """Every time series of Assay and its labels."""
    names: dict[str, set[str]] = {}
    for registry in (REGISTRY, StoreMetrics().registry):
        for collector in list(registry._collector_to_names):
            labels = set(getattr(collector, "_labelnames", ()))
            for family in collector.describe() if hasattr(collector, "describe") else []:
                endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
                names |= {f"{family.name}{end}": labels | ({"le"} if end == "_bucket" else set()) for end in endings}
    return names


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("where", expressions())
def test_every_expression_names_metrics_and_labels_that_exist(where: str) -> None:
    assert metrics.LAG  # the registry is filled by the import
    known, expression = series(), expressions()[where]
    used = re.findall(r"\b(assay_\w+)(?:\{([^}]*)\})?", expression)
    for name, selector in used:
        assert name in known, f"{where}: {name}"
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector):
            assert label in known[name] | {"job", "instance"}, f"{where}: {name}{{{label}}}"
    grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
    assert grouped <= set().union(*(known[name] for name, _ in used)) | {"job", "instance"}, where


@pytest.mark.parametrize("where", expressions())
def test_every_label_value_an_expression_compares_with_is_one_that_occurs(where: str) -> None:
    known = {
        "outcome": OUTCOMES | {"sent", "given_up", "refused", "rejected"},
        "stream": {stream.name for stream in STREAMS},
        "reason": {reason.value for reason in Reason},
        "severity": {severity.value for severity in Severity},
        "job": {each["job_name"] for each in scrape()},
    }
    for label, _, text in re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', expressions()[where]):
        if label in known:
            assert set(text.split("|")) <= known[label], f"{where}: {label}={text}"


def test_the_alarm_of_lag_is_the_readiness_limit() -> None:
    (rule,) = (rule for rule in rules() if rule["alert"] == "AssayLagHigh")
    assert rule["expr"].endswith(f"> {DeliverySettings().lag_limit_entries}")


def test_alerts_of_quality_are_routed_by_labels_that_the_notifier_sets() -> None:
    configured = yaml.safe_load((DEPLOY / "alertmanager/alertmanager.yml").read_text())
    (quality,) = configured["route"]["routes"]
    ours = labels(transition(1, AlertState.WARN), Severity.WARNING)
    assert set(quality["group_by"]) <= set(ours)
    assert quality["matchers"] == ['alert_id != ""']
    names = {f"Assay{''.join(map(str.capitalize, kind.value.split('_')))}" for kind in AlertKind}
    known = names | {rule["alert"] for rule in rules()}
    for rule in configured["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            assert set(re.findall(r"Assay\w+", matcher)) <= known, matcher


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
        assert {"summary", "description"} == set(rule["annotations"]), rule["alert"]


def scrape() -> list[dict[str, Any]]:
    configured: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())[
        "scrape_configs"
    ]
    return configured


def test_prometheus_scrapes_services_of_compose_at_the_ports_they_serve() -> None:
    reached: dict[str, int] = {}
    for job in scrape():
        for found in job.get("dns_sd_configs", []):
            reached |= dict.fromkeys(found["names"], found["port"])
        for found in job.get("static_configs", []):
            reached |= {host: int(port) for host, port in (target.split(":") for target in found["targets"])}
    store = (DEPLOY / "clickhouse/config.d/assay.xml").read_text()
    assert reached.pop("clickhouse") == int(re.findall(r"<port>(\d+)</port>", store)[0])
    assert reached.pop("localhost") == 9090
    assert reached == {
        "scrubber": 9101,
        "writer": 9102,
        "judge": 9103,
        "drift": 9104,
        "notifier": 9105,
        "gateway": 9106,
        "assembler": 9107,
        "otlp_exporter": 9108,
        "console": 9109,
        "auditor": 9110,
    }
    for name in reached:
        assert str(reached[name]) in " ".join(SERVICES[name]["healthcheck"]["test"])


def test_prometheus_finds_alertmanager_and_its_rules_where_compose_puts_them() -> None:
    configured = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
    ((target,),) = (each["targets"] for each in configured["alerting"]["alertmanagers"][0]["static_configs"])
    assert target.split(":")[0] in SERVICES
    inside = [volume.split(":")[1] for volume in SERVICES["prometheus"]["volumes"]]
    assert set(configured["rule_files"]) <= set(inside)


def test_grafana_reads_its_source_and_dashboards_where_compose_puts_them() -> None:
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    assert {panel["datasource"]["uid"] for panel in panels()} == {source["uid"]}
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/assay.yml").read_text())["providers"][0]
    inside = [volume.split(":")[1] for volume in SERVICES["grafana"]["volumes"]]
    assert provider["options"]["path"] in inside


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: str(path.stem))
def test_panels_do_not_overlap_and_each_has_its_own_number(dashboard: Path) -> None:
    taken: set[tuple[int, int]] = set()
    shown = json.loads(dashboard.read_text())["panels"]
    for panel in shown:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in shown}) == len(shown)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: str(path.stem))
def test_a_dashboard_links_to_pages_that_the_console_has(dashboard: Path) -> None:
    document = json.loads(dashboard.read_text())
    [console] = document["templating"]["list"]
    assert (console["name"], console["query"]) == ("console", f"http://127.0.0.1:{ConsoleSettings().listen_port}")
    links = [urlsplit(each["url"].removeprefix("${console}")) for each in document["links"]]
    assert len(links) >= 3
    for each in links:
        page = next(page for page in PAGES if page.path == each.path)
        assert bool(page.span) == (each.query == "from=${__from:date:iso}&to=${__to:date:iso}"), each.path


def test_the_console_links_to_dashboards_that_exist() -> None:
    templates = Path(str(assay_console.__file__)).parent / "templates"
    named = {
        uid
        for file in templates.glob("*.html")
        for uid in re.findall(r"grafana\.dashboard\(ask, '([^']+)'\)", file.read_text())
    }
    assert named == {json.loads(path.read_text())["uid"] for path in DASHBOARDS}


def test_prometheus_accepts_its_configuration() -> None:
    run(needed("promtool"), "check", "config", "--syntax-only", str(DEPLOY / "prometheus/prometheus.yml"))


def test_alerts_fire_when_they_should_and_only_then() -> None:
    run(needed("promtool"), "check", "rules", str(ALERTS))
    run(needed("promtool"), "test", "rules", str(DEPLOY / "prometheus/alerts_test.yml"))


def test_prometheus_understands_every_panel(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions().values())]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    run(needed("promtool"), "check", "rules", str(file))


def test_alertmanager_accepts_its_configuration() -> None:
    run(needed("amtool"), "check-config", str(DEPLOY / "alertmanager/alertmanager.yml"))
