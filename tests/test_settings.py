"""Where settings come from, and what is said about bad ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ByteSize, ValidationError

from metastore.settings import (
    Settings,
    SettingsError,
    default_text,
    displayed,
    environment_name,
    load,
    markdown_table,
    mask_password,
)

URL = "postgresql://keeper:s3cr%23t@db.example:5433/lake"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(environment_name(name), raising=False)


def toml(directory: Path, text: str) -> Path:
    file = directory / "metastore.toml"
    file.write_text(text)
    return file


@given(st.none() | st.integers(0, 65535), st.none() | st.integers(0, 65535), st.none() | st.integers(0, 65535))
def test_flags_come_before_the_environment_before_the_file_before_the_default(
    tmp_path_factory: pytest.TempPathFactory, flag: int | None, environment: int | None, in_file: int | None
) -> None:
    file = toml(tmp_path_factory.mktemp("settings"), "" if in_file is None else f"port = {in_file}")
    with pytest.MonkeyPatch.context() as patch:
        if environment is not None:
            patch.setenv("METASTORE_PORT", str(environment))
        settings, origins = load({} if flag is None else {"port": str(flag)}, file)
    given_values = [(flag, "--port"), (environment, "METASTORE_PORT"), (in_file, f"port in {file}")]
    expected = next(((value, place) for value, place in given_values if value is not None), (9083, None))
    assert (settings.port, origins.get("port")) == expected


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASTORE_DATABASE_URL", "")
    settings, origins = load()
    assert settings.database_url is None
    assert origins == {}


def test_settings_made_directly_ignore_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASTORE_PORT", "1")
    assert Settings().port == 9083


def test_settings_can_not_change() -> None:
    with pytest.raises(ValueError):
        Settings().port = 1


def test_defaults_that_follow_other_settings() -> None:
    settings = Settings(data_dir=Path("/srv/lake"), threads=3)
    assert settings.warehouse_dir == "/srv/lake/warehouse"
    assert settings.database_pool_size == 3
    assert Settings(data_dir=Path("/srv/lake"), warehouse_dir="s3://lake/w").warehouse_dir == "s3://lake/w"


def test_paths_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    settings = Settings(data_dir=Path("data"), warehouse_dir="~/warehouse", warehouse_external_dir="file:/w")
    assert settings.data_dir == tmp_path / "data"
    assert settings.warehouse_dir == "/home/somebody/warehouse"
    assert settings.warehouse_external_dir == "file:/w"


@pytest.mark.parametrize(
    ("given_size", "size"), [("1000", 1000), ("64KiB", 65536), ("100MiB", 104857600), ("2GB", 2_000_000_000)]
)
def test_sizes_may_have_units(given_size: str, size: int) -> None:
    settings, _ = load({"max_message_bytes": given_size})
    assert settings.max_message_bytes == size


def test_webhooks_from_a_variable_and_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("METASTORE_EVENT_WEBHOOKS", "audit=https://a.example/x?y=1,2 jobs=http://b.example:81/")
    settings, _ = load()
    assert [(hook.name, hook.url) for hook in settings.event_webhooks] == [
        ("audit", "https://a.example/x?y=1,2"),
        ("jobs", "http://b.example:81/"),
    ]
    assert (
        displayed("event_webhooks", settings.event_webhooks) == "audit=https://a.example/…, jobs=http://b.example:81/…"
    )
    monkeypatch.delenv("METASTORE_EVENT_WEBHOOKS")
    text = '[[event_webhooks]]\nname = "n"\nurl = "http://h/token"\nsecret = "hidden"\ntables = ["ods.*"]\n'
    settings, _ = load({}, toml(tmp_path, text))
    assert settings.event_webhooks[0].tables == ("ods.*",)
    assert "hidden" not in repr(settings) + displayed("event_webhooks", settings.event_webhooks)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("audit", "'' is no URL"),
        ("a=http://x a=http://y", "two webhooks have the same name"),
        ([{"name": "a", "url": "http://x", "types": ["NONSENSE"]}], "'NONSENSE' is no type of events"),
        ([{"name": "a", "url": "http://x", "tables": ["orders"]}], "'orders' is no pattern of tables"),
        ([{"name": "a/b", "url": "http://x", "secret": "hidden"}], "string should match pattern"),
    ],
)
def test_bad_webhooks(value: object, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load({"event_webhooks": value})
    assert str(error.value).startswith("--event-webhooks: bad value: ")
    assert message in str(error.value)
    assert "hidden" not in str(error.value)


def test_lists_are_written_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASTORE_EVENT_LISTENERS", "a.b:C, d:e")
    settings, _ = load()
    assert settings.event_listeners == ("a.b:C", "d:e")
    assert displayed("event_listeners", settings.event_listeners) == "a.b:C, d:e"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_every_spelling_of_a_postgres_url(scheme: str) -> None:
    settings = Settings(database_url=f"{scheme}://keeper:s3cr%23t@db.example:5433/lake")
    assert settings.database_url == "postgresql+psycopg2://keeper:s3cr%23t@db.example:5433/lake"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("port", "abc", "--port: bad value 'abc': input should be a valid integer"),
        ("port", "70000", "--port: bad value '70000': input should be less than or equal to 65535"),
        ("workers", "0", "--workers: bad value '0': input should be greater than or equal to 1"),
        (
            "drain_seconds",
            "-1",
            "--drain-seconds: bad value '-1': input should be greater than or equal to 0",
        ),
        ("drain_seconds", "inf", "--drain-seconds: bad value 'inf': input should be a finite number"),
        ("max_string_bytes", "1 lot", "--max-string-bytes: bad value '1 lot': could not interpret byte unit"),
        ("log_level", "loud", "--log-level: bad value 'loud': input should be 'debug', 'info'"),
        (
            "database_url",
            "mysql://u:hidden@h/d",
            "--database-url: bad value: expected postgresql://…, not mysql://…",
        ),
        (
            "database_url",
            "db.example hidden",
            "--database-url: bad value: expected postgresql://user:password@host",
        ),
    ],
)
def test_a_bad_value_is_one_line_that_names_its_place(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load({name: value})
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert "hidden" not in str(error.value)


def test_all_bad_values_are_named_with_their_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("METASTORE_THREADS", "many")
    file = toml(tmp_path, "workers = -1")
    with pytest.raises(SettingsError) as error:
        load({"port": "x"}, file)
    complaints = str(error.value).split("; ")
    assert [complaint.split(":")[0] for complaint in complaints] == [
        "--port",
        f"workers in {file}",
        "METASTORE_THREADS",
    ]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [("prot", "port"), ("data-dir", "data_dir"), ("databaseUrl", "database_url"), ("worker", "workers")],
)
def test_an_unknown_key_names_the_nearest_known_one(tmp_path: Path, key: str, nearest: str) -> None:
    file = toml(tmp_path, f'{key} = "x"')
    with pytest.raises(SettingsError) as error:
        load({}, file)
    assert str(error.value) == f"{file}: unknown setting {key!r}; did you mean {nearest!r}?"


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"can't read the settings file .*: No such file or directory$"):
        load({}, tmp_path / "missing.toml")
    with pytest.raises(SettingsError, match=r"metastore.toml is not TOML: .*line 1"):
        load({}, toml(tmp_path, "port: 1"))
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match="is not TOML"):
        load({}, tmp_path / "binary.toml")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, "postgresql://keeper:***@db.example:5433/lake"),
        (
            "postgresql://keeper@/lake?host=/run&password=s3cret",
            "postgresql://keeper@/lake?host=%2Frun",
        ),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert mask_password(url) == shown
    settings = Settings(database_url=url)
    assert "s3cr" not in displayed("database_url", settings.database_url)
    assert "s3cr" not in repr(settings)


def test_values_are_shown_in_units_people_read() -> None:
    settings = Settings(max_message_bytes=ByteSize(1024 * 1024), max_string_bytes=ByteSize(1000), drain_seconds=0.5)
    names = ("max_message_bytes", "max_string_bytes", "drain_seconds", "http_port", "host")
    shown = {name: displayed(name, getattr(settings, name)) for name in names}
    assert shown == {
        "max_message_bytes": "1MiB",
        "max_string_bytes": "1000",
        "drain_seconds": "0.5",
        "http_port": "",
        "host": "127.0.0.1",
    }


def test_every_setting_is_documented() -> None:
    rows = markdown_table().splitlines()[2:]
    assert [row.split("`")[1] for row in rows] == list(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        assert field.description and field.description.endswith((".", ")")), name
        assert default_text(name) != "``", f"{name} needs its default in words"
    assert all(row.count("|") == 4 for row in rows)


def jwt(keys: str) -> Settings:
    return Settings(
        authentication=["jwt"], jwt_keys=keys, jwt_issuer="i", jwt_audience="a", credentials_without_tls=True
    )


@pytest.mark.parametrize(
    "keys", ["http://issuer.example/keys", "http://10.0.0.1/keys", "http://localhost.example/keys"]
)
def test_keys_of_tokens_from_a_place_that_proves_nothing(keys: str) -> None:
    with pytest.raises(ValidationError, match=r"could be replaced by others on their way: use https://, or a file"):
        jwt(keys)


@pytest.mark.parametrize(
    "keys",
    ["https://issuer.example/keys", "http://127.0.0.1:8080/keys", "http://localhost/keys", "http://[::1]:80/k", "/k"],
)
def test_keys_of_tokens_from_places_that_are_taken(keys: str) -> None:
    assert jwt(keys).jwt_keys == keys
