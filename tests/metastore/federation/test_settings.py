"""The settings of a front's server: from its own file, the environment and flags."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lake.protocol.connection.login import BadLogin
from metastore.cli.federate import federate, server_settings
from metastore.federation.configuration import Backend, Configuration, FederationError
from metastore.federation.mapping import Mapping
from metastore.settings import SettingsError

URI = "thrift://a.example:9083"


def configuration(server: dict[str, Any] | None = None, **backend: Any) -> Configuration:
    return Configuration.model_validate({"server": server or {}, "backends": {"a": {"uris": URI, **backend}}})


def test_flags_before_the_environment_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file = configuration({"port": 1, "workers": 2, "threads": 3})
    monkeypatch.setenv("METASTORE_WORKERS", "5")
    monkeypatch.setenv("METASTORE_ICEBERG_EXPOSE", "true")  # of another server
    found = server_settings(file, {"threads": "7"})
    assert (found.port, found.workers, found.threads) == (1, 5, 7)
    assert not found.iceberg_expose
    monkeypatch.delenv("METASTORE_WORKERS")
    assert server_settings(configuration(), {}).threads == 64
    with pytest.raises(SettingsError, match="port: bad value"):
        server_settings(configuration({"port": -1}), {})


def test_what_a_front_doesnt_have() -> None:
    with pytest.raises(FederationError, match=r"server\.warehouse_dir: a front has no such setting"):
        server_settings(configuration({"warehouse_dir": "/x"}), {})


def test_what_a_log_needs(tmp_path: Path) -> None:
    with pytest.raises(FederationError, match=r"backends\.b\.follow needs a number"):
        Mapping(followed({"federation": {"log_readers": ["*"]}}, follow=True))
    with pytest.raises(FederationError, match=r"backends\.b\.follow needs federation\.log_readers"):
        Mapping(followed({}, follow=True, number=1))
    readers = {"log_readers": ["ann", "group:etl"]}
    found = Mapping(followed({"federation": readers}, follow=True, number=1))
    assert found.followed == ("b",)
    may = found.configuration.federation.may_read_log
    assert may("ann", ()) and may("bob", ["etl"])
    assert not may(None, ()) and not may("etl", ["ann"])
    password = tmp_path / "password"
    password.write_text("secret\n")
    settings = Backend.model_validate({"uris": URI, "user": "front", "password_file": password})
    assert (settings.login(None, front=True).user, settings.login(None, front=True).acting_as) == ("front", None)


def followed(more: dict[str, Any], **backend: Any) -> Configuration:
    others = {"a": {"uris": URI}, "b": {"uris": URI, "prefix": "b_", **backend}}
    return Configuration.model_validate({"backends": others, **more})


def test_who_acts_for_callers_must_know_them(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    backend: dict[str, Any] = {"user": "front", "password_file": str(password)}
    with pytest.raises(FederationError, match=r"set server\.authentication"):
        server_settings(configuration(**backend), {})
    settings = Backend.model_validate({"uris": URI, **backend})
    login = settings.login("ann")
    assert (login.user, login.password, login.acting_as) == ("front", "secret", "ann")
    with pytest.raises(BadLogin, match="has not said who it is"):
        settings.login(None)


def test_explain(tmp_path: Path) -> None:
    file = tmp_path / "federation.toml"
    file.write_text(f'[backends.a]\nuris = "{URI}"\nprefix = "a_"')
    result = CliRunner().invoke(federate, ["explain", "--config", str(file), "a_db.t", "db"])
    assert result.output.splitlines() == [
        f"a_db: db of backend a ({URI}), read-write, by backends.a.prefix 'a_'",
        "db: no backend. Names of catalog hive begin with prefix 'a_' (a), or are renamed",
    ]
    assert CliRunner().invoke(federate, []).exit_code == 2
