"""The Helm chart in deploy/: its values and files. What Helm makes of it is in tests/interop/test_helm_chart.py."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lake.maintenance.manager import STOP_SECONDS
from metastore import __version__, settings

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm/lake-metastore"


def values() -> dict[str, Any]:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def schema() -> dict[str, Any]:
    return json.loads((CHART / "values.schema.json").read_text())


def test_the_default_values_satisfy_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(values(), schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": "2"},
        {"replica": 2},
        {"database": {"existingSecret": "", "key": "url"}},
        {"warehouse": "lake"},
        {"settings": {"port": 9083}},
        {"service": {"port": 90830}},
        {"prometheusRule": {"enabled": "yes"}},
        {"dashboard": {"label": {}}},
        {"tableServices": {"executor": "mesos"}},
        {"tableServices": {"executor": "yarn"}},
        {"tableServices": {"executor": "kubernetes", "podTemplate": {}}},
        {"tableServices": {"executor": "arrow", "podTemplate": {"spec": {}}}},
    ],
    ids=str,
)
def test_the_schema_refuses(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values() | wrong, schema())


def test_the_chart_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


def test_a_stopping_server_is_given_longer_than_it_drains() -> None:
    assert values()["terminationGracePeriodSeconds"] > settings.Settings.model_fields["drain_seconds"].default


def test_table_services_are_given_time_to_stop() -> None:
    assert values()["tableServices"]["terminationGracePeriodSeconds"] > STOP_SECONDS


@pytest.mark.parametrize(
    "copy", [("alerts.yml", "prometheus/alerts.yml"), ("dashboard.json", "grafana/lake-metastore.json")]
)
def test_the_chart_has_the_files_of_deploy(copy: tuple[str, str]) -> None:
    """Helm reads no file outside of a chart, and links don't survive everywhere: copy the file."""
    inside, outside = copy
    assert (CHART / "files" / inside).read_bytes() == (DEPLOY / outside).read_bytes()
