"""Moving directories: in one step where there is a rename, copied and redone after a crash elsewhere."""

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from metastore.warehouse import Warehouse, WarehouseError

FILES = {"a": b"1", "p=1/b": b"22", "p=1/q=2/c": b"333", "p=2/_hidden": b"", ".staging/d": b"4"}
SHARED_MEMORY = Path("/dev/shm")


class Crash(BaseException):
    """The process ends here."""


@contextmanager
def crash_at(step: int, owner: Any, names: list[str], when: str) -> Iterator[list[int]]:
    """Lets only so many of the owner's functions run, then crashes before or after the next one."""
    steps = [0]
    originals = {name: getattr(owner, name) for name in names}

    def crashing(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            steps[0] += 1
            if steps[0] == step and when == "before":
                raise Crash
            result = original(*args, **kwargs)
            if steps[0] == step and when == "after":
                raise Crash
            return result

        return call

    for name, original in originals.items():
        setattr(owner, name, crashing(original))
    try:
        yield steps
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


def write(directory: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(data)


def read(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


class Memory:
    """A warehouse in memory, with table `s` to move to `t`."""

    def __init__(self) -> None:
        root = f"memory://{uuid.uuid4().hex}/wh"
        self.warehouse = Warehouse(root, schemes=["memory"])
        self.fs = fsspec.filesystem("memory")
        self.source, self.target = f"{root}/s", f"{root}/db/t"
        for name, data in FILES.items():
            self.fs.pipe_file(f"{self.source}/{name}", data)
        self.fs.makedirs(f"{self.source}/p=3/empty")

    def files(self, location: str) -> dict[str, bytes]:
        path = "/" + location.removeprefix("memory://")
        return {name[len(path) + 1 :]: self.fs.cat_file(name) for name in self.fs.find(path)}

    def assert_moved(self) -> None:
        assert self.files(self.target) == FILES
        assert self.fs.isdir(f"{self.target}/p=3/empty")
        assert not self.fs.exists(self.source)

    def move(self) -> bool:
        return self.warehouse.move_directory(self.source, self.target)


@pytest.fixture
def local(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "wh"))


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """A directory that no rename reaches from the test's own."""
    if not SHARED_MEMORY.is_dir() or SHARED_MEMORY.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second file system at /dev/shm")
    directory = Path(tempfile.mkdtemp(dir=SHARED_MEMORY))
    yield directory
    shutil.rmtree(directory)


def test_a_local_move_is_one_rename(local: Warehouse, tmp_path: Path) -> None:
    source, target = tmp_path / "wh" / "s", tmp_path / "wh" / "db" / "new" / "t"
    write(source, FILES)
    inode = source.stat().st_ino
    assert local.move_directory(f"file:{source}", f"file:{target}")
    assert target.stat().st_ino == inode
    assert read(target) == FILES
    assert not source.exists()
    assert not local.move_directory(f"file:{source}", f"file:{target}")
    assert read(target) == FILES


def test_a_move_in_memory_copies() -> None:
    memory = Memory()
    assert memory.move()
    memory.assert_moved()
    assert not memory.move()
    memory.assert_moved()


def test_nothing_to_move_is_fine(local: Warehouse, tmp_path: Path) -> None:
    assert not local.move_directory(f"{tmp_path}/nothing", f"{tmp_path}/t")
    assert not (tmp_path / "t").exists()
    memory = Memory()
    assert not memory.warehouse.move_directory(f"{memory.source}/nothing", memory.target)
    assert not memory.fs.exists(memory.target)


def test_an_empty_directory_that_others_just_made_gives_way(local: Warehouse, tmp_path: Path) -> None:
    write(tmp_path / "s", FILES)
    (tmp_path / "t").mkdir()
    assert local.move_directory(f"{tmp_path}/s", f"{tmp_path}/t")
    assert read(tmp_path / "t") == FILES


@pytest.mark.parametrize("files", [{"x": b"y"}, {".metastore-move": b"{}"}, {".metastore-move": b"\xff"}])
def test_a_taken_target_is_left_alone(files: dict[str, bytes], local: Warehouse, tmp_path: Path) -> None:
    source, target = tmp_path / "s", tmp_path / "t"
    write(source, FILES)
    target.mkdir()
    write(target, files)
    with pytest.raises(WarehouseError, match=f"cannot move file:{source} to file:{target}: something else is there"):
        local.move_directory(str(source), str(target))
    assert read(source) == FILES
    assert read(target) == files

    memory = Memory()
    memory.fs.makedirs(memory.target)
    for name, data in files.items():
        memory.fs.pipe_file(f"{memory.target}/{name}", data)
    with pytest.raises(WarehouseError, match="something else is there"):
        memory.move()
    assert memory.files(memory.source) == FILES
    assert memory.files(memory.target) == files


def test_a_target_that_is_a_file_is_left_alone(local: Warehouse, tmp_path: Path) -> None:
    write(tmp_path / "s", FILES)
    (tmp_path / "t").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    for target in ("t", "link"):
        with pytest.raises(WarehouseError, match="something else is there"):
            local.move_directory(f"{tmp_path}/s", f"{tmp_path}/{target}")
    assert read(tmp_path / "s") == FILES


def test_a_file_is_not_moved(local: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(WarehouseError, match="a file, not a directory"):
        local.move_directory(f"{tmp_path}/f", f"{tmp_path}/t")
    memory = Memory()
    with pytest.raises(WarehouseError, match="a file, not a directory"):
        memory.warehouse.move_directory(f"{memory.source}/a", memory.target)


@pytest.mark.parametrize(
    ("source", "goal", "why"),
    [
        ("/x/s", "/x/s", "one contains the other"),
        ("/x/s", "/x/s/t", "one contains the other"),
        ("/x/s/t", "/x/s", "one contains the other"),
        ("/x/s", "s3a://bucket/s", "different storages"),
        ("s3a://bucket/s", "s3a://other/s", "different storages"),
        ("s3a://bucket/s", "s3://bucket/s/t", "one contains the other"),
    ],
)
def test_moves_that_make_no_sense(source: str, goal: str, why: str, local: Warehouse) -> None:
    with pytest.raises(WarehouseError, match=why):
        local.move_directory(source, goal)


def test_a_link_is_moved_itself(local: Warehouse, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", FILES)
    (tmp_path / "s").symlink_to(tmp_path / "elsewhere")
    assert local.move_directory(f"{tmp_path}/s", f"{tmp_path}/t")
    assert (tmp_path / "t").is_symlink()
    assert read(tmp_path / "elsewhere") == FILES


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_copying_move_survives_a_crash_anywhere(when: str) -> None:
    step = 0
    while True:
        step += 1
        memory = Memory()
        names = ["cp_file", "pipe_file", "rm_file", "rmdir", "makedirs"]
        with crash_at(step, MemoryFileSystem, names, when) as steps, suppress(Crash):
            memory.move()
        # Nothing is ever lost: each file is in at least one of the two places.
        both = {**memory.files(memory.source), **memory.files(memory.target)}
        assert {name: both.get(name) for name in FILES} == FILES
        if steps[0] < step:
            break
        if memory.warehouse.exists(memory.target):
            with pytest.raises(WarehouseError, match="something else is there"):
                other = memory.source.removesuffix("s") + "other"
                memory.fs.pipe_file(f"{other}/x", b"x")
                memory.warehouse.move_directory(other, memory.target)
        memory.move()
        memory.assert_moved()
    assert step > 15


def test_a_move_may_crash_many_times() -> None:
    memory = Memory()
    for _ in range(100):
        with crash_at(5, MemoryFileSystem, ["cp_file", "pipe_file", "rm_file", "rmdir", "makedirs"], "before"):
            try:
                memory.move()
            except Crash:
                continue
        break
    memory.assert_moved()


def test_copying_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    with crash_at(4, MemoryFileSystem, ["cp_file"], "after"), pytest.raises(Crash):
        memory.move()
    copied: list[str] = []
    copy = MemoryFileSystem.cp_file
    monkeypatch.setattr(MemoryFileSystem, "cp_file", lambda fs, a, b: (copied.append(a), copy(fs, a, b)))
    assert memory.move()
    assert len(copied) == len(FILES) - 4
    memory.assert_moved()


def test_nothing_is_deleted_before_all_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure's copies may still be under way when they are answered, their target empty until then."""
    memory = Memory()
    copy = MemoryFileSystem.cp_file

    def late(fs: MemoryFileSystem, source: str, target: str) -> None:
        if source.endswith("/c"):
            fs.pipe_file(target, b"")
        else:
            copy(fs, source, target)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "cp_file", late)
        with pytest.raises(WarehouseError, match="its copy is not complete yet"):
            memory.move()
    assert memory.files(memory.source) == FILES
    assert memory.move()
    memory.assert_moved()


def test_a_target_of_an_unfinished_move_stays_where_it_is(other_device: Path, tmp_path: Path) -> None:
    memory = Memory()
    with crash_at(3, MemoryFileSystem, ["cp_file"], "before"), pytest.raises(Crash):
        memory.move()
    with pytest.raises(WarehouseError, match="an earlier move to it is unfinished"):
        memory.warehouse.move_directory(memory.target, memory.target + "2")
    memory.move()
    memory.assert_moved()
    assert memory.warehouse.move_directory(memory.target, memory.target + "2")
    assert memory.files(memory.target + "2") == FILES

    write(other_device / "s", FILES)
    local = Warehouse(str(tmp_path / "wh"))
    with crash_at(1, os, ["unlink"], "before"), pytest.raises(Crash):
        local.move_directory(f"{other_device}/s", f"{tmp_path}/t")
    with pytest.raises(WarehouseError, match="an earlier move to it is unfinished"):
        local.move_directory(f"{tmp_path}/t", f"{tmp_path}/t2")
    assert local.move_directory(f"{other_device}/s", f"{tmp_path}/t")
    assert local.move_directory(f"{tmp_path}/t", f"{tmp_path}/t2")
    assert read(tmp_path / "t2") == FILES


def test_across_devices_links_stay_links(local: Warehouse, tmp_path: Path, other_device: Path) -> None:
    source, target = other_device / "s", tmp_path / "db" / "t"
    write(source, FILES)
    (source / "p=3" / "empty").mkdir(parents=True)
    (source / "link").symlink_to("/etc")
    (source / "a").chmod(0o640)
    assert local.move_directory(f"file:{source}", f"file:{target}")
    assert read(target) == FILES
    assert (target / "link").readlink() == Path("/etc")
    assert (target / "a").stat().st_mode & 0o777 == 0o640
    assert (target / "p=3" / "empty").is_dir()
    assert not source.exists()
    assert [path.name for path in target.parent.iterdir()] == ["t"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_move_across_devices_survives_a_crash_anywhere(
    when: str, local: Warehouse, tmp_path: Path, other_device: Path
) -> None:
    step = 0
    while True:
        step += 1
        source, target = other_device / f"s{step}", tmp_path / f"db{step}" / "t"
        write(source, FILES)
        names = ["unlink", "rmdir", "rename", "mkdir", "chmod", "sync"]
        with crash_at(step, os, names, when) as steps, suppress(Crash):
            local.move_directory(f"file:{source}", f"file:{target}")
        # The target is there whole or not at all.
        if target.exists():
            assert {name: data for name, data in read(target).items() if name != ".metastore-move"} == FILES
        else:
            assert read(source) == FILES
        if steps[0] < step:
            break
        local.move_directory(f"file:{source}", f"file:{target}")
        assert read(target) == FILES
        assert not source.exists()
        assert [path.name for path in target.parent.iterdir()] == ["t"]
    assert step > 10


def test_a_full_disk_leaves_no_copy_behind(
    local: Warehouse, tmp_path: Path, other_device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = other_device / "s", tmp_path / "db" / "t"
    write(source, FILES)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "sync", full)
    with pytest.raises(WarehouseError, match=r"no space left on device\. Check the disk"):
        local.move_directory(f"file:{source}", f"file:{target}")
    assert read(source) == FILES
    assert list(target.parent.iterdir()) == []
