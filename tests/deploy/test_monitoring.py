"""What is written about metrics: the page, the alerts and the dashboard name those that there are."""

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from metastore.server.monitoring import metrics

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/monitoring.md").read_text()
ALERTS = ROOT / "deploy/prometheus/alerts.yml"
DASHBOARD = ROOT / "deploy/grafana/lake-metastore.json"
OF_PROMETHEUS = {"instance", "job"}  # labels that it adds itself
ROWS = ["Traffic", "Latency", "Cache", "Database", "Readiness", "Events", "Housekeeping"]


class Metric(NamedTuple):
    type: str
    labels: frozenset[str]


def metrics_of_the_server() -> dict[str, Metric]:
    """Every metric by the name under which the page lists it: a counter's ends with `_total`."""
    found = {}
    for metric in metrics._metrics().registry._collector_to_names:
        name = metric._name + ("_total" if metric._type == "counter" else "")
        found[name] = Metric(metric._type, frozenset(metric._labelnames))
    for name in metrics._OF_GROUPS:
        found[name] = Metric("gauge", frozenset({"group"}))
    return found | {"metastore_event_groups": Metric("gauge", frozenset())}


def samples() -> dict[str, frozenset[str]]:
    """The labels of every series that Prometheus gets, by its name."""
    found = {}
    for name, (kind, labels) in metrics_of_the_server().items():
        ends = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}.get(kind, ("",))
        for end in ends:
            found[name + end] = labels | ({"le"} if end == "_bucket" else set())
    return found


def rows_of_the_page() -> Iterator[list[str]]:
    for line in PAGE.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def alerts() -> dict[str, dict[str, Any]]:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    found = {rule["alert"]: rule for rule in rules}
    assert len(found) == len(rules)
    return found


def panels() -> list[dict[str, Any]]:
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions() -> list[Any]:
    of_alerts = [pytest.param(rule["expr"], id=name) for name, rule in alerts().items()]
    return of_alerts + [
        pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
        for panel in panels()
        for target in panel.get("targets", ())
    ]


def test_the_page_lists_every_metric_with_type_and_labels() -> None:
    listed = {
        row[0].strip("`"): Metric(row[1], frozenset(re.findall(r"`(\w+)`", row[2])))
        for row in rows_of_the_page()
        if row[0].startswith("`metastore_")
    }
    assert listed == metrics_of_the_server()


def test_the_page_lists_every_alert_beside_its_metrics() -> None:
    beside = {
        row[0].strip("`"): set(re.findall(r"\bMetastore\w+", row[4]))
        for row in rows_of_the_page()
        if row[0].startswith("`metastore_")
    }
    listed = [row[0] for row in rows_of_the_page() if row[0].startswith("Metastore")]
    assert listed == list(alerts())
    assert {name for names in beside.values() for name in names} == set(listed)
    for metric, names in beside.items():
        for name in names:
            assert re.search(rf"{metric}(_bucket|_sum|_count)?\b", alerts()[name]["expr"]), (metric, name)


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_series_and_labels_that_there_are(expression: str) -> None:
    known = samples()
    series = re.findall(r"\bmetastore_\w+", expression)
    assert series
    assert set(series) <= known.keys()
    of_these = OF_PROMETHEUS.union(*(known[each] for each in series))
    for name, matchers in re.findall(r"\b(metastore_\w+)\{([^}]*)\}", expression):
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", matchers)) <= known[name] | OF_PROMETHEUS
    for grouping in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
        assert {label.strip() for label in grouping.split(",")} <= of_these


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_how_bad_it_is_and_names_labels_that_it_has(name: str) -> None:
    rule = alerts()[name]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    kept = {label.strip() for each in re.findall(r"\bby \(([^)]*)\)", rule["expr"]) for label in each.split(",")}
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= kept


def test_promtool_accepts_the_alerts() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run(["promtool", "check", "rules", str(ALERTS)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_dashboard_shows_every_metric_in_the_rows_of_the_page() -> None:
    assert [panel["title"] for panel in panels() if panel["type"] == "row"] == ROWS
    assert re.findall(r"^### (.*)", PAGE, re.MULTILINE) == ROWS
    shown = " ".join(target["expr"] for panel in panels() for target in panel.get("targets", ()))
    missing = [name for name in metrics_of_the_server() if not re.search(rf"\b{name}(_bucket|_sum|_count)?\b", shown)]
    assert missing == []


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    assert [key for key, count in Counter(panel["id"] for panel in panels()).items() if count > 1] == []
    taken: Counter[tuple[int, int]] = Counter()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for x in range(place["x"], place["x"] + place["w"]):
            taken.update((x, y) for y in range(place["y"], place["y"] + place["h"]))
    assert set(taken.values()) == {1}


def test_every_data_source_is_the_one_that_is_chosen() -> None:
    sources = [panel["datasource"]["uid"] for panel in panels() if panel["type"] != "row"]
    sources += [target["datasource"]["uid"] for panel in panels() for target in panel.get("targets", ())]
    assert set(sources) == {"${datasource}"}
