"""What users may do with directories, compared with what the kernel lets processes of these users do."""

import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator
from os import fork
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metastore.warehouse import Warehouse
from metastore.warehouse.permissions import READ, SEARCH, WRITE, FileUser, Permissions, file_user, made_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories to others, and act as them")

UIDS = (4_001, 4_002, 4_003)
GIDS = (5_001, 5_002, 5_003)
USERS = st.builds(
    lambda uid, gid, more: FileUser(uid, gid, frozenset({gid, *more})),
    st.sampled_from(UIDS),
    st.sampled_from(GIDS),
    st.sets(st.sampled_from(GIDS), max_size=2),
)
BITS = st.integers(0, 7)
MODES = st.integers(0, 0o777) | st.integers(0o1000, 0o1777)
NAMED = st.tuples(st.just(2), BITS, st.sampled_from(UIDS)) | st.tuples(st.just(8), BITS, st.sampled_from(GIDS))
LISTS = st.tuples(st.lists(NAMED, max_size=4, unique_by=lambda each: (each[0], each[2])), *[BITS] * 4)
PLACES = st.tuples(st.sampled_from((0, *UIDS)), st.sampled_from((0, *GIDS)), MODES, st.none() | LISTS)


@pytest.fixture
def area() -> Iterator[Path]:
    """A directory that everybody can reach, and nobody but root can change."""
    path = Path(tempfile.mkdtemp(prefix="permissions-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def with_list(path: Path, named: list[tuple[int, int, int]], owner: int, group: int, mask: int, other: int) -> None:
    nobody = 0xFFFFFFFF
    entries = [(1, owner, nobody), *named, (4, group, nobody), (0x10, mask, nobody), (0x20, other, nobody)]
    entries.sort(key=lambda each: (each[0], each[2]))
    packed = b"".join(struct.pack("<HHI", *each) for each in entries)
    os.setxattr(path, "system.posix_acl_access", struct.pack("<I", 2) + packed)


def by_kernel(user: FileUser, act: Callable[[], bool]) -> bool:
    """What a function returns in a process of a user."""
    child = fork()
    if not child:
        code = 2
        try:
            os.setgroups(sorted(user.groups))
            assert user.gid is not None and user.uid is not None
            os.setgid(user.gid)
            os.setuid(user.uid)
            code = int(act())
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1)
    return bool(code)


def moves(source: Path, target: Path) -> bool:
    try:
        source.rename(target)
    except OSError:
        return False
    return True


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(user=USERS, above=PLACES, below=PLACES)
def test_it_is_what_the_kernel_does(user: FileUser, above: tuple, below: tuple) -> None:  # type: ignore[type-arg]
    area = Path(tempfile.mkdtemp(prefix="permissions-", dir="/tmp"))
    try:
        area.chmod(0o755)
        parent, place = area / "parent", area / "parent" / "place"
        place.mkdir(parents=True)
        for path, (uid, gid, mode, acl) in ((place, below), (parent, above)):
            os.chown(path, uid, gid)
            path.chmod(mode)
            if acl is not None:
                with_list(path, *acl)
        looked = Permissions()
        reads = by_kernel(user, lambda: os.access(place, os.R_OK | os.X_OK))
        writes = by_kernel(user, lambda: os.access(place, os.W_OK | os.X_OK))
        assert (looked.refusal(str(place), user, READ) is None) == reads
        assert (looked.refusal(str(place), user, WRITE) is None) == writes
        assert (looked.refusal(str(parent), user, SEARCH) is None) == by_kernel(
            user, lambda: os.access(parent, os.X_OK)
        )
        may_delete = looked.refusal_to_delete(str(place), user) is None
        assert may_delete == (writes and by_kernel(user, lambda: moves(place, parent / "moved")))
    finally:
        shutil.rmtree(area)


def test_what_is_not_there_is_decided_above(area: Path) -> None:
    user = FileUser(UIDS[0])
    open_, shut = area / "open", area / "shut"
    open_.mkdir()
    shut.mkdir()
    open_.chmod(0o777)
    assert Permissions().refusal(str(open_ / "a" / "b"), user, WRITE) is None
    assert f"no right to write and search {shut}, which has the mode drwxr-xr-x" == Permissions().refusal(
        str(shut / "a" / "b"), user, WRITE
    )
    shut.chmod(0o700)
    (shut / "b").mkdir()
    assert f"no right to search {shut}," in str(Permissions().refusal(str(shut / "b" / "c"), user, READ))
    assert "no right to read and search" in str(Permissions().refusal(str(shut / "a"), user, READ))


def test_links_lead_to_what_decides(area: Path) -> None:
    shut, link = area / "shut", area / "link"
    shut.mkdir(0o700)
    link.symlink_to(shut)
    assert Permissions().refusal(str(link), FileUser(UIDS[0]), READ) is not None
    (area / "circle").symlink_to(area / "circle")
    assert "can't look at" in str(Permissions().refusal(str(area / "circle" / "x"), FileUser(UIDS[0]), READ))


def test_names() -> None:
    assert file_user("daemon", ()).uid == 1
    assert 0 in file_user("daemon", ("root",)).groups
    assert file_user("no such user", ("daemon", "no such group")) == FileUser(None, None, frozenset({1}))
    assert file_user(None, ()).uid is None


def test_directories_are_made_for_a_user(area: Path) -> None:
    warehouse = Warehouse(str(area))
    of_group = area / "group"
    of_group.mkdir()
    os.chown(of_group, 0, GIDS[1])
    of_group.chmod(0o2775)
    kept = area / "kept"
    kept.mkdir()
    with made_for(FileUser(UIDS[0], GIDS[0])):
        assert warehouse.make_directory(f"{area}/db/t/dt=1")
        assert not warehouse.make_directory(f"{area}/db/t/dt=1")
        assert not warehouse.make_directory(str(kept))
        assert warehouse.make_directory(f"{of_group}/t")
    assert warehouse.make_directory(f"{area}/mine")
    owners = {name: (area / name).stat() for name in ("db", "db/t", "db/t/dt=1", "kept", "group/t", "mine")}
    assert {name: (each.st_uid, each.st_gid) for name, each in owners.items()} == {
        "db": (UIDS[0], GIDS[0]),
        "db/t": (UIDS[0], GIDS[0]),
        "db/t/dt=1": (UIDS[0], GIDS[0]),
        "kept": (0, 0),
        "group/t": (UIDS[0], GIDS[1]),
        "mine": (0, 0),
    }
