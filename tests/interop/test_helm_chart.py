"""What Helm makes of the chart in deploy/. Helm comes as a library for Java, which has it in its jar."""

import json
import platform
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lake.cli.commands.table_services_run import run_services
from metastore import settings
from tests.deploy.test_helm_chart import CHART, DEPLOY, values
from tests.interop import java

HELM = "0.0.19"
KUBERNETES = "1.31"
NAMESPACE = "lake"
NAME = "metastore-lake-metastore"

Manifests = dict[tuple[str, str], dict[str, Any]]
"""Manifests by their kind, and what their names have after `NAME`."""

POD = {"spec": {"containers": [{"name": "plan", "image": "registry.example/lake-spark:4"}]}}
IN_PODS = {"enabled": True, "executor": "kubernetes", "podTemplate": POD}
ON_YARN = {
    "enabled": True,
    "executor": "yarn",
    "yarnUrls": ["http://one:8088", "http://two:8088"],
    "env": [{"name": "HADOOP_CONF_DIR", "value": "/etc/hadoop"}],
    "volumes": [{"name": "hadoop", "configMap": {"name": "hadoop"}}],
    "volumeMounts": [{"name": "hadoop", "mountPath": "/etc/hadoop"}],
}

Helm = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def helm(class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Runs Helm with a command and its arguments."""
    if platform.machine() != "x86_64":
        pytest.skip("needs Helm's library for this processor")
    if (program := java.jdk(17, 99)) is None:
        pytest.skip("needs a JDK from 17 on")
    jars = class_path(f"com.marcnuri.helm-java:helm-java:{HELM}", f"com.marcnuri.helm-java:linux-amd64:{HELM}")
    classes = tmp_path_factory.mktemp("classes")
    java.compile(program, Path(__file__).parent / "helm_java", jars, classes)
    command = [str(program), "-cp", ":".join(map(str, [classes, *jars])), "helm.Chart"]
    return lambda *arguments: subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)


@pytest.fixture
def rendered(helm: Helm, tmp_path: Path) -> Callable[..., Manifests]:
    def made(**given: Any) -> Manifests:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(given))
        done = helm("template", CHART, file, NAMESPACE, KUBERNETES)
        assert done.returncode == 0, done.stderr
        found = [each for each in yaml.safe_load_all(done.stdout) if each]
        by_name = {(each["kind"], each["metadata"]["name"].removeprefix(NAME)): each for each in found}
        assert len(by_name) == len(found)
        return by_name

    return made


Rendered = Callable[..., Manifests]


def pod_of(manifests: Manifests, name: str = "") -> dict[str, Any]:
    pod: dict[str, Any] = manifests["Deployment", name]["spec"]["template"]
    return pod


def test_helm_finds_nothing_to_complain_of(helm: Helm) -> None:
    linted = helm("lint", CHART)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_helm_refuses_wrong_values(helm: Helm, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: two\n")
    refused = helm("template", CHART, tmp_path / "values.yaml", NAMESPACE, KUBERNETES)
    assert refused.returncode != 0
    assert "replicas" in refused.stderr


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"redis": {"existingSecret": "redis"}, "serviceAccount": {"create": False}, "replicas": 1},
        {
            "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
            "podLabels": {"team": "lake"},
            "nodeSelector": {"disk": "ssd"},
        },
        {
            "env": [{"name": "AWS_REGION", "value": "eu-west-1"}],
            "envFrom": [{"secretRef": {"name": "s3"}}],
            "tableServices": {"enabled": True},
        },
        {"dashboard": {"enabled": True}},
        {"tableServices": {"enabled": True}, "nodeSelector": {"disk": "ssd"}},
        {"tableServices": IN_PODS, "serviceAccount": {"annotations": {"role": "lake"}}},
        {"tableServices": ON_YARN},
    ],
    ids=["defaults", "one-server", "exposed", "credentials", "dashboard", "table-services", "pods", "yarn"],
)
def test_manifests_are_what_kubernetes_takes(rendered: Rendered, given: dict[str, Any]) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    manifests = rendered(**given)
    assert {("Deployment", ""), ("Service", ""), ("ConfigMap", "")} <= set(manifests)
    assert (("PodDisruptionBudget", "") in manifests) == (given.get("replicas") != 1)
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_the_server_accepts_what_the_chart_gives_it(
    rendered: Rendered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifests = rendered(settings={"cache_memory": "256MiB", "threads": 16}, redis={"existingSecret": "redis"})
    file = tmp_path / "metastore.toml"
    file.write_text(manifests["ConfigMap", ""]["data"]["metastore.toml"])
    assert tomllib.loads(file.read_text())["threads"] == 16
    secrets = {
        "METASTORE_DATABASE_URL": "postgresql://metastore:secret@postgres/metastore",
        "METASTORE_REDIS_URL": "redis://redis",
    }
    [container] = pod_of(manifests)["spec"]["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value") or secrets[variable["name"]])
    loaded, _ = settings.load(config_file=file)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"thrift": loaded.port, "http": loaded.http_port}
    assert loaded.cache_memory == 256 * 1024 * 1024
    assert loaded.warehouse_dir == values()["warehouse"]


def test_table_services_are_run_on_request(rendered: Rendered) -> None:
    assert ("Deployment", "-table-services") not in rendered()
    manifests = rendered(tableServices={"enabled": True, "args": ["--slots", "4"]})
    pod = pod_of(manifests, "-table-services")
    [running] = pod["spec"]["containers"]
    parsed = run_services.make_context("run", running["args"][2:]).params
    service = manifests["Service", ""]
    assert parsed["uri"] == f"thrift://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert (parsed["slots"], parsed["http_port"]) == (4, running["ports"][0]["containerPort"])
    assert not service["spec"]["selector"].items() <= pod["metadata"]["labels"].items(), "calls go to servers alone"
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_plans_are_run_in_pods(rendered: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of the table services may make pods where they are made, and nothing else; the servers' may not."""
    manifests = rendered(tableServices=IN_PODS, serviceAccount={"annotations": {"role": "lake"}})
    pod = pod_of(manifests, "-table-services")["spec"]
    [running] = pod["containers"]
    arguments = running["args"][2:]
    at = arguments.index("--pod-template") + 1
    [mount] = [each for each in running["volumeMounts"] if arguments[at].startswith(each["mountPath"] + "/")]
    [volume] = [each for each in pod["volumes"] if each["name"] == mount["name"]]
    files = manifests["ConfigMap", volume["configMap"]["name"].removeprefix(NAME)]["data"]
    (tmp_path / "pod.yaml").write_text(files[arguments[at].rpartition("/")[2]])
    arguments[at] = str(tmp_path / "pod.yaml")
    parsed = run_services.make_context("run", arguments).params
    assert (parsed["executor"], parsed["kubernetes_namespace"]) == ("kubernetes", NAMESPACE)
    assert yaml.safe_load(parsed["pod_template"].read_text()) == POD

    account = manifests["ServiceAccount", "-table-services"]
    assert account["metadata"]["annotations"] == {"role": "lake"}
    [subject] = manifests["RoleBinding", "-table-services"]["subjects"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], NAMESPACE)
    assert subject["name"] == account["metadata"]["name"]
    allowed = {
        (resource, verb)
        for rule in manifests["Role", "-table-services"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    on_pods = {("pods", verb) for verb in ("create", "get", "list", "delete")}
    assert allowed == {*on_pods, ("pods/log", "get")}
    assert pod["automountServiceAccountToken"] is True
    server = pod_of(manifests)["spec"]
    assert (server["automountServiceAccountToken"], server["serviceAccountName"]) == (False, NAME)


def test_plans_are_run_on_yarn(rendered: Rendered) -> None:
    pod = pod_of(rendered(tableServices=ON_YARN), "-table-services")["spec"]
    [running] = pod["containers"]
    parsed = run_services.make_context("run", running["args"][2:]).params
    assert (parsed["executor"], parsed["yarn_urls"]) == ("yarn", ("http://one:8088", "http://two:8088"))
    assert {"name": "HADOOP_CONF_DIR", "value": "/etc/hadoop"} in running["env"]
    assert {"name": "hadoop", "mountPath": "/etc/hadoop"} in running["volumeMounts"]


def test_a_service_monitor_is_made_on_request(rendered: Rendered) -> None:
    assert ("ServiceMonitor", "") not in rendered()
    monitor = rendered(serviceMonitor={"enabled": True})["ServiceMonitor", ""]
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "15s"}]
    with_tls = rendered(serviceMonitor={"enabled": True, "endpoint": {"scheme": "https"}})["ServiceMonitor", ""]
    assert with_tls["spec"]["endpoints"][0]["scheme"] == "https"


def test_the_alerts_are_made_on_request(rendered: Rendered) -> None:
    assert ("PrometheusRule", "") not in rendered()
    rule = rendered(prometheusRule={"enabled": True, "labels": {"release": "prometheus"}})["PrometheusRule", ""]
    assert rule["metadata"]["labels"]["release"] == "prometheus"
    assert rule["spec"] == yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())


def test_the_dashboard_is_made_on_request(rendered: Rendered) -> None:
    assert ("ConfigMap", "-dashboard") not in rendered()
    dashboard = rendered(dashboard={"enabled": True})["ConfigMap", "-dashboard"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    shown = json.loads(dashboard["data"]["lake-metastore.json"])
    assert shown == json.loads((DEPLOY / "grafana/lake-metastore.json").read_text())


def test_a_package_of_the_chart_has_its_files(helm: Helm, tmp_path: Path) -> None:
    packed = helm("package", CHART, tmp_path)
    assert packed.returncode == 0, packed.stderr
    (package,) = tmp_path.iterdir()
    with tarfile.open(package) as files:
        alerts = files.extractfile("lake-metastore/files/alerts.yml")
        assert alerts is not None
        assert alerts.read() == (DEPLOY / "prometheus/alerts.yml").read_bytes()
