"""The file of a front is changed in place: only what it has to say changes."""

import errno
import itertools
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.login import Login
from lake.protocol.errors import UserError
from metastore.federation.configuration import FederationError
from metastore.federation.mapping import Mapping
from metastore.federation.names import Name
from metastore.migration.objects import DatabaseKey
from metastore.migration.switching.front_file import FrontFile, Site
from metastore.migration.switching.gate import FrontGate

FILE = """# the front of all
[server]
port = 9083

[federation]

[backends.old]   # the Hive
uris = ["thrift://old:9083"]
primary = true
deny = "people"
read_only = [
    "frozen_*",  # for ever
]

["backends"."eu"]
uris = "thrift://eu:9083"
prefix = "eu_"
number = 2
rename = { people = "hr" }

[backends.lake]
uris = "thrift://new-1:9083"
prefix = "lake_"
number = 1
"""


def site(backend: str, name: str) -> Site:
    return Site(backend, DatabaseKey("hive", name))


@pytest.fixture
def file(tmp_path: Path) -> FrontFile:
    path = tmp_path / "federation.toml"
    path.write_text(FILE)
    path.chmod(0o640)
    return FrontFile(path)


def test_frozen_and_thawed(file: FrontFile) -> None:
    place = site("old", "sales")
    file.freeze(place)
    assert file.is_frozen(place) and not file.is_frozen(site("old", "hr"))
    assert 'read_only = ["frozen_*", "sales"]' in file.path.read_text()
    file.freeze(place)
    file.thaw(place)
    assert not file.is_frozen(place) and file.is_frozen(site("old", "frozen_1"))
    text = file.path.read_text()
    assert "# the front of all" in text and "# the Hive" in text
    assert file.path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in file.path.parent.iterdir()] == ["federation.toml"]


@pytest.mark.parametrize(
    ("backend", "there", "front"), [("old", "sales", "sales"), ("eu", "x", "eu_x"), ("eu", "hr", "people")]
)
@pytest.mark.parametrize(("here", "allow"), list(itertools.product(["sales", "other"], [None, "[]", '["sales"]'])))
def test_over_and_back(file: FrontFile, backend: str, there: str, front: str, here: str, allow: str | None) -> None:
    if backend == "eu":  # only tables whose header is written as usual can be changed
        file.path.write_text(FILE.replace('["backends"."eu"]', "[backends.eu]"))
    if allow is not None:
        file.path.write_text(file.path.read_text() + f"allow = {allow}\n" + "rename = {}\n")
    old, new = site(backend, there), site("lake", here)
    before = file.mapping()
    assert file.common_name(old.key, old, new) == front
    file.freeze(old)
    file.lead(front, old, new, only_tried=True)
    assert not file.leads_to(front, new)
    file.lead(front, old, new)
    assert file.leads_to(front, new) and not file.is_frozen(new)
    assert file.mapping().name(backend, old.name) is None
    assert file.common_name(old.key, old, new) == front
    file.freeze(new)
    file.lead(front, new, old)
    assert file.leads_to(front, old) and not file.is_frozen(old)
    for name in ("default", "eu_default", "people", "sales", "eu_x", "lake_z"):
        was, now = (each.place(Name("hive", name)) for each in (before, file.mapping()))
        assert was == now or "lake" in {was and was.backend, now and now.backend}, name


def test_what_it_cannot_change_it_refuses_and_leaves(file: FrontFile) -> None:
    old, new = site("eu", "x"), site("lake", "x")
    with pytest.raises(UserError, match="written in a way that can't be changed"):
        file.freeze(old)
    file.path.write_text(FILE.replace('rename = { people = "hr" }', '[backends.eu.rename]\npeople = "hr"'))
    assert file.path.read_text() != FILE
    file.path.write_text(FILE + "read_only = true\n")
    text = file.path.read_text()
    with pytest.raises(UserError, match=r"backends.lake.read_only makes x read-only"):
        file.lead("x", site("old", "x"), new)
    file.path.write_text(FILE + 'deny = ["x*"]\n')
    with pytest.raises(UserError, match="can't be led to x of backend lake"):
        file.lead("x", site("old", "x"), new)
    assert file.path.read_text() == FILE + 'deny = ["x*"]\n' != text
    file.path.write_text("[backends]\n")
    with pytest.raises(FederationError):
        FrontFile(file.path)


def test_a_link_stays_one(file: FrontFile) -> None:
    link = file.path.with_name("link.toml")
    link.symlink_to(file.path)
    FrontFile(link).freeze(site("old", "sales"))
    assert link.is_symlink() and file.is_frozen(site("old", "sales"))


def test_a_file_that_cannot_be_replaced(file: FrontFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    with pytest.raises(UserError, match="can't be replaced: Device or resource busy"):
        file.freeze(site("old", "sales"))
    assert [each.name for each in file.path.parent.iterdir()] == ["federation.toml"]


def test_backends_are_known_by_their_addresses(file: FrontFile) -> None:
    assert file.backend_at("thrift://new-1:9083") == "lake"
    assert file.backend_at("thrift://old") == "old"
    with pytest.raises(UserError, match=r"0 backends have a server at else:9083: .*--old-backend"):
        file.backend_at("thrift://else:9083")


def test_a_backend_beside_the_old_one_keeps_its_tables(file: FrontFile) -> None:
    """They are found by the names of the old one alone."""
    text = FILE + '[backends.more]\nuris = "thrift://more:9083"\nbeside = "old"\nnumber = 3\n'
    file.path.write_text(text)
    with pytest.raises(UserError, match="backend more is beside old, and nobody would find its tables of sales any"):
        file.lead("sales", site("old", "sales"), site("lake", "sales"), only_tried=True)
    with pytest.raises(UserError, match="backend more is beside old"):
        file.lead("sales", site("old", "sales"), site("lake", "sales"))
    assert file.path.read_text() == text


def test_what_is_done_twice_is_done_once(file: FrontFile) -> None:
    """As by a command that goes on after a kill."""
    for _ in range(2):
        file.lead("sales", site("old", "sales"), site("lake", "sales"))
    assert file.mapping().backends["old"].deny == ("people", "sales")


def test_what_somebody_else_changes_meanwhile_is_kept(file: FrontFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a command for another database: each freezes its own."""
    checked = Mapping.__init__
    begun: list[bool] = []

    def slow(mapping: Mapping, *arguments: Any) -> None:
        checked(mapping, *arguments)
        if not begun:
            begun.append(True)
            FrontFile(file.path).freeze(site("old", "hr"))

    with monkeypatch.context() as patched:
        patched.setattr(Mapping, "__init__", slow)
        file._change(lambda values: values["backends"]["old"]["read_only"].append("sales"))
    assert begun and file.is_frozen(site("old", "hr")) and file.is_frozen(site("old", "sales"))


def test_clients_are_led_nowhere_else_if_it_was_not_frozen_all_the_time(file: FrontFile) -> None:
    old, new = site("old", "sales"), site("lake", "sales")
    gate = FrontGate(file, "sales", old, new, (), Login())
    file.freeze(old)
    file.path.write_text(FILE)  # from an editor
    with pytest.raises(UserError, match="somebody has let sales be changed again in the meantime"):
        gate.switch()
    file.freeze(old)
    gate.switch()
    gate.switch()
    assert file.leads_to("sales", new)


def test_a_file_on_a_disk_that_is_read_only(file: FrontFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """There nothing can be removed either, also what isn't there."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(UserError, match="can't be replaced: Read-only file system"):
        file._write("new")
