"""The Helm chart in deploy/: its values, and what `helm` makes of it where that is installed."""

import json
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from metastore import __version__, settings
from metastore.cli.table_services_run import run_services
from metastore.table_services.manager import STOP_SECONDS

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm/lake-metastore"
KUBERNETES = "1.31"


def values() -> dict[str, Any]:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def schema() -> dict[str, Any]:
    return json.loads((CHART / "values.schema.json").read_text())


def rendered(*options: str) -> dict[str, dict[str, Any]]:
    """The manifests by their kind; those of a second of that kind as Dashboard and TableServices."""
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")
    made = subprocess.run(
        ["helm", "template", "metastore", str(CHART), "--kube-version", KUBERNETES, *options],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    others = {
        "metastore-lake-metastore-dashboard": "Dashboard",
        "metastore-lake-metastore-table-services": "TableServices",
    }
    return {
        others.get(manifest["metadata"]["name"], manifest["kind"]): manifest
        for manifest in yaml.safe_load_all(made.stdout)
        if manifest
    }


def container(manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]


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
        {"tableServices": {"executor": "yarn"}},
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


def test_helm_finds_nothing_to_complain_of() -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")
    linted = subprocess.run(["helm", "lint", "--strict", str(CHART)], capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--set", "redis.existingSecret=redis,serviceAccount.create=false,replicas=1"),
        ("--set", "service.type=LoadBalancer,service.annotations.a=b,podLabels.team=lake,nodeSelector.disk=ssd"),
        (
            "--set-json",
            'env=[{"name":"AWS_REGION","value":"eu-west-1"}]',
            "--set-json",
            'envFrom=[{"secretRef":{"name":"s3"}}]',
        ),
        ("--set", "dashboard.enabled=true"),
        ("--set", "tableServices.enabled=true,nodeSelector.disk=ssd"),
    ],
    ids=["defaults", "one-server", "exposed", "credentials", "dashboard", "table-services"],
)
def test_manifests_are_what_kubernetes_takes(options: tuple[str, ...]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    manifests = rendered(*options)
    assert {"Deployment", "Service", "ConfigMap"} <= set(manifests)
    assert ("PodDisruptionBudget" in manifests) == ("replicas=1" not in " ".join(options))
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_server_accepts_what_the_chart_gives_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifests = rendered(
        "--set", "settings.cache_memory=256MiB,settings.threads=16", "--set", "redis.existingSecret=redis"
    )
    file = tmp_path / "metastore.toml"
    file.write_text(manifests["ConfigMap"]["data"]["metastore.toml"])
    assert tomllib.loads(file.read_text())["threads"] == 16
    secrets = {
        "METASTORE_DATABASE_URL": "postgresql://metastore:secret@postgres/metastore",
        "METASTORE_REDIS_URL": "redis://redis",
    }
    for variable in container(manifests)["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value") or secrets[variable["name"]])
    loaded, _ = settings.load(config_file=file)
    ports = {port["name"]: port["containerPort"] for port in container(manifests)["ports"]}
    assert ports == {"thrift": loaded.port, "http": loaded.http_port}
    assert loaded.cache_memory == 256 * 1024 * 1024
    assert loaded.warehouse_dir == values()["warehouse"]


def test_table_services_are_run_on_request() -> None:
    assert "TableServices" not in rendered()
    manifests = rendered("--set", "tableServices.enabled=true,tableServices.args={--slots,4}")
    pod = manifests["TableServices"]["spec"]["template"]
    [running] = pod["spec"]["containers"]
    parsed = run_services.make_context("run", running["args"][2:]).params
    service = manifests["Service"]
    assert parsed["uri"] == f"thrift://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert (parsed["slots"], parsed["http_port"]) == (4, running["ports"][0]["containerPort"])
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items(), "calls go to servers alone"


def test_table_services_are_given_time_to_stop() -> None:
    assert values()["tableServices"]["terminationGracePeriodSeconds"] > STOP_SECONDS


def test_a_service_monitor_is_made_on_request() -> None:
    assert "ServiceMonitor" not in rendered()
    monitor = rendered("--set", "serviceMonitor.enabled=true")["ServiceMonitor"]
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "15s"}]
    login = "serviceMonitor.enabled=true,serviceMonitor.endpoint.scheme=https"
    assert rendered("--set", login)["ServiceMonitor"]["spec"]["endpoints"][0]["scheme"] == "https"


def test_the_alerts_are_made_on_request() -> None:
    assert "PrometheusRule" not in rendered()
    rule = rendered("--set", "prometheusRule.enabled=true,prometheusRule.labels.release=prometheus")["PrometheusRule"]
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert rule["spec"] == yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())


def test_the_dashboard_is_made_on_request() -> None:
    assert "Dashboard" not in rendered()
    dashboard = rendered("--set", "dashboard.enabled=true")["Dashboard"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    shown = json.loads(dashboard["data"]["lake-metastore.json"])
    assert shown == json.loads((DEPLOY / "grafana/lake-metastore.json").read_text())


def test_a_package_of_the_chart_has_the_files_themselves(tmp_path: Path) -> None:
    """In the tree they are links."""
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")
    subprocess.run(["helm", "package", str(CHART), "--destination", str(tmp_path)], check=True, capture_output=True)
    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as files:
        alerts = files.extractfile("lake-metastore/files/alerts.yml")
        assert alerts is not None
        assert alerts.read() == (DEPLOY / "prometheus/alerts.yml").read_bytes()
