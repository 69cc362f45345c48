"""Trino logged in: by Kerberos, by a certificate of its own within TLS, and by both at once.

Its catalogs differ in how they reach one and the same server.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from tests.interop import trino
from tests.interop.logins.conftest import Door, opened
from tests.interop.trino import JARS, RELEASES, Trino, TrinoError, object_store
from tests.metastore.server.login.conftest import Keys
from tests.support.kerberos import REALM, Realm

WAYS = {
    "kerberos": ("carol", "kerberos"),
    "certificate": ("worker", "certificate"),
    "kerberos_within_tls": ("carol", "kerberos"),
}
"""Catalogs, and as whom and how each logs in."""


@pytest.fixture(scope="module", params=list(RELEASES))
def release(request: pytest.FixtureRequest) -> str:
    if (reason := trino.missing(request.param)) is not None:
        pytest.skip(reason)
    return request.param


@pytest.fixture(scope="module")
def door_and_files(
    release: str, keys: Keys, realm: Realm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Door, dict[str, str]]]:
    """A server with the warehouse that suits the release, and Trino's settings for that."""
    directory = tmp_path_factory.mktemp("door")
    if release == "411":
        with opened(directory, keys, realm) as door:
            yield door, {}
    else:
        with object_store() as settings, opened(directory, keys, realm, "s3://lake/warehouse") as door:
            yield door, settings


@pytest.fixture
def door(door_and_files: tuple[Door, dict[str, str]]) -> Door:
    return door_and_files[0]


def as_pkcs8(key: Path) -> bytes:
    """A key in the only form of PEM that Trino reads."""
    read = serialization.load_pem_private_key(key.read_bytes(), None)
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return read.private_bytes(serialization.Encoding.PEM, form, plain)


@pytest.fixture(scope="module")
def engine(
    release: str,
    door_and_files: tuple[Door, dict[str, str]],
    keys: Keys,
    keytab: Path,
    of_java: tuple[str, ...],
    class_path: Callable[..., list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Trino]:
    door, files = door_and_files
    directory = tmp_path_factory.mktemp(f"trino-{release}")
    tls = {
        "hive.metastore.thrift.client.ssl.enabled": "true",
        "hive.metastore.thrift.client.ssl.trust-certificate": str(keys.authority.file),
    }
    certificate, key = keys.authority.issue("worker", "worker.example", common_name="worker")
    pair = directory / "worker-and-key.pem"
    pair.write_bytes(as_pkcs8(key) + certificate.read_bytes())
    by_certificate = {"hive.metastore.thrift.client.ssl.key": str(pair)}
    by_kerberos = {
        "hive.metastore.authentication.type": "KERBEROS",
        "hive.metastore.service.principal": f"metastore/_HOST@{REALM}",
        "hive.metastore.client.principal": f"carol@{REALM}",
        "hive.metastore.client.keytab": str(keytab),
    }
    settings = {
        "kerberos": by_kerberos,
        "certificate": tls | by_certificate,
        "kerberos_within_tls": tls | by_kerberos,
        "nobody": tls,
    }
    common = {"hive.metastore.uri": door.uri, "hive.security": "allow-all", **files}
    catalogs = {name: common | each for name, each in settings.items()}
    with trino.running(release, class_path(*JARS[release]), directory, catalogs, of_java) as engine:
        yield engine


@pytest.mark.parametrize("way", WAYS)
def test_the_life_of_a_table(engine: Trino, door: Door, way: str) -> None:
    schema = f"{way}.trino_{way}"
    engine.sql(f"CREATE SCHEMA {schema}")
    engine.sql(f"CREATE TABLE {schema}.t (id integer, dt varchar) WITH (partitioned_by = ARRAY['dt'])")
    engine.sql(f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, 'b')")
    assert engine.sql(f"SELECT id FROM {schema}.t WHERE dt = 'b'") == [[2]]
    engine.sql(f"DROP TABLE {schema}.t")
    engine.sql(f"DROP SCHEMA {schema}")
    for method in ("create_database", "drop_table"):
        assert door.came_in(method, f"trino_{way}") == {WAYS[way]}


def test_without_a_login(engine: Trino) -> None:
    with pytest.raises(TrinoError, match="answers nobody who has not logged in"):
        engine.sql("SHOW SCHEMAS FROM nobody")
