"""The Dockerfile and docker-compose.yml, as far as they can be checked where no Docker engine runs."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from lake.cli.commands.table_services_run import run_services
from lake.maintenance.manager import STOP_SECONDS
from metastore import settings
from metastore.cli.federate import federate
from metastore.federation.mapping import Mapping

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yml"


def compose() -> dict[str, Any]:
    return yaml.safe_load(COMPOSE.read_text())


def services() -> dict[str, dict[str, Any]]:
    return compose()["services"]


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, continued lines joined: (name, arguments)."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


def arguments(instruction: str) -> list[str]:
    return [rest for name, rest in dockerfile() if name == instruction]


def sent_to_docker(path: str) -> bool:
    """Whether .dockerignore lets a path of the repository through: the last pattern matching it decides."""
    sent = True
    for pattern in (ROOT / ".dockerignore").read_text().split("\n"):
        if pattern and not pattern.startswith("#"):
            bare = pattern.removeprefix("!")
            candidates = [path, *map(str, Path(path).parents)]
            if any(fnmatch(candidate, bare.replace("**/", "*")) for candidate in candidates):
                sent = pattern.startswith("!")
    return sent


def substituted(value: str) -> str:
    """A value as compose reads it when no variable is set: `${NAME:-default}` is its default."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def server_environment() -> dict[str, str]:
    """The environment of the server's container: the image's, then the compose file's."""
    image = dict(pair.split("=", 1) for rest in arguments("ENV") for pair in shlex.split(rest))
    return image | {k: substituted(str(v)) for k, v in services()["metastore"]["environment"].items()}


def test_every_service_has_a_health_check() -> None:
    assert set(services()) == {"metastore", "table-services", "front", "postgres", "redis"}
    for name, service in services().items():
        assert service["healthcheck"]["test"][0] == "CMD", name


def test_the_server_waits_for_a_healthy_database() -> None:
    assert services()["metastore"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_volumes_are_declared_and_ports_stay_on_this_machine() -> None:
    mounted = {volume.split(":")[0] for service in services().values() for volume in service.get("volumes", [])}
    assert mounted == set(compose()["volumes"])
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_server_accepts_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server_environment().items():
        assert name.removeprefix(settings.ENVIRONMENT_PREFIX).lower() in settings.Settings.model_fields, name
        monkeypatch.setenv(name, value)
    loaded, _ = settings.load()
    url = loaded.database_url
    assert url is not None
    database = services()["postgres"]["environment"]
    password = substituted(database["POSTGRES_PASSWORD"])
    assert url.endswith(f"//{database['POSTGRES_USER']}:{password}@postgres:5432/{database['POSTGRES_DB']}")
    published = {int(port.rsplit(":", 1)[1]) for port in services()["metastore"]["ports"]}
    assert published == {loaded.port, loaded.http_port}
    assert (loaded.host, loaded.http_host) == ("0.0.0.0", "0.0.0.0")


def test_the_table_services_accept_their_arguments() -> None:
    service = services()["table-services"]
    given = service["command"]
    assert given[:2] == ["table-services", "run"]
    parsed = run_services.make_context("run", given[2:]).params
    assert parsed["uri"] == f"thrift://metastore:{settings.Settings.model_fields['port'].default}"
    assert f":{parsed['http_port']}/ready" in service["healthcheck"]["test"][-1]
    assert float(service["stop_grace_period"].removesuffix("s")) > STOP_SECONDS
    assert set(service["volumes"]) == set(services()["metastore"]["volumes"]), "it reads and writes the tables' files"


def test_the_front_accepts_its_arguments() -> None:
    service = services()["front"]
    assert service["profiles"] == ["federation"]
    (config,) = service["configs"]
    parsed = federate.make_context("federate", service["command"][1:]).params
    assert service["command"][0] == "federate"
    assert str(parsed["file"]) == config["target"]
    mapping = Mapping.load(ROOT / compose()["configs"][config["source"]]["file"])
    assert mapping.backends["lake"].uris == (f"thrift://metastore:{settings.Settings.model_fields['port'].default}",)
    assert mapping.primary == "lake"
    (port,) = service["ports"]
    assert port.endswith(f":{settings.Settings.model_fields['port'].default}")


def test_a_stopping_server_is_given_longer_than_it_drains() -> None:
    drain = settings.Settings.model_fields["drain_seconds"].default
    assert float(services()["metastore"]["stop_grace_period"].removesuffix("s")) > drain


def test_what_the_dockerfile_copies_exists_and_reaches_docker() -> None:
    sources = [source for rest in arguments("COPY") for source in rest.split()[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert sent_to_docker(source), f"{source} is held back by .dockerignore"
    assert sent_to_docker("metastore/settings.py")
    assert not sent_to_docker(".git")
    assert not sent_to_docker("lake/protocol/__pycache__/x.pyc")


def test_the_image_runs_the_installed_command_as_an_ordinary_user() -> None:
    assert arguments("USER") == ["metastore"]
    order = [name for name, _ in dockerfile()]
    assert order.index("USER") > max(i for i, name in enumerate(order) if name == "RUN")
    scripts = tomllib.loads((ROOT / "lake/pyproject.toml").read_text())["project"]["scripts"]
    (entry,), (check,) = arguments("ENTRYPOINT"), arguments("HEALTHCHECK")
    assert json.loads(entry)[0] in scripts
    assert json.loads(check.partition("CMD ")[2])[0] in scripts
    assert services()["metastore"]["healthcheck"]["test"][1:] == json.loads(check.partition("CMD ")[2])


def test_compose_accepts_the_file() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("docker's compose plugin is not installed")
    checked = subprocess.run(
        ["docker", "compose", "--file", str(COMPOSE), "config", "--quiet"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
