"""What the warehouse does to directories, on all kinds of storage; on S3 where s3fs and moto are there."""

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry as drivers
from pyarrow.fs import LocalFileSystem

from metastore.warehouse import DEFAULT_SCHEMES, Summary, Warehouse, WarehouseError


@dataclass
class Storage:
    """A warehouse at `root`, and the means to put files there and to see them behind its back."""

    warehouse: Warehouse
    root: str
    fs: Any
    prefix: str  # of locations, where the file system's own paths go on
    own: str = ""

    def path(self, location: str) -> str:
        assert location.startswith(self.prefix)
        return self.own + location.removeprefix(self.prefix)

    def write(self, location: str, *files: str, data: bytes = b"data") -> str:
        contents = {f"{self.path(location)}/{file}": data for file in files}
        for directory in {path.rpartition("/")[0] for path in contents}:
            self.fs.makedirs(directory, exist_ok=True)
        self.fs.pipe(contents)
        return location

    def files(self, location: str) -> dict[str, bytes]:
        path = self.path(location)
        found = self.fs.find(path) if self.fs.exists(path) else []
        return {name[len(path) + 1 :]: self.fs.cat_file(name) for name in found if not name.endswith("/")}


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class LocalHdfs(ArrowFSWrapper):
    """HDFS as fsspec speaks to it, through pyarrow, with the local file system in the place of a cluster."""

    protocol = "hdfs"

    def __init__(self, host: str, port: int, **options: Any) -> None:
        super().__init__(LocalFileSystem(), **options)


@pytest.fixture(params=["file", "memory", "hdfs", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    if request.param == "file":
        root = f"file:{tmp_path}/warehouse"
        return Storage(Warehouse(root), root, fsspec.filesystem("file"), "file:")
    if request.param == "hdfs":
        monkeypatch.setitem(drivers, "hdfs", LocalHdfs)
        root = f"hdfs://nn:8020{tmp_path}/warehouse"
        return Storage(Warehouse(root), root, fsspec.filesystem("file"), "hdfs://nn:8020")
    name = uuid.uuid4().hex
    if request.param == "memory":
        root = f"memory://{name}/warehouse"
        warehouse = Warehouse(root, schemes=["memory"])
        return Storage(warehouse, root, fsspec.filesystem("memory"), "memory://", "/")
    options = {
        "key": "key",
        "secret": "secret",
        "endpoint_url": request.getfixturevalue("s3_endpoint"),
    }
    fs = fsspec.filesystem("s3", use_listings_cache=False, **options)
    fs.mkdir(name)
    root = f"s3a://{name}/warehouse"
    return Storage(Warehouse(root, options={"s3": options}), root, fs, "s3a://")


@pytest.fixture
def local(tmp_path: Path) -> Warehouse:
    (tmp_path / "warehouse").mkdir()
    return Warehouse(str(tmp_path / "warehouse"))


def test_a_directory_is_made_once(storage: Storage) -> None:
    warehouse, table = storage.warehouse, f"{storage.root}/db.db/t"
    assert not warehouse.exists(table)
    assert not warehouse.is_directory(table)
    assert warehouse.make_directory(table)
    assert not warehouse.make_directory(table)
    assert warehouse.exists(table)
    assert warehouse.is_directory(table)
    assert warehouse.is_directory(f"{storage.root}/db.db")
    assert warehouse.is_empty(table)
    assert storage.files(table) == {}


def test_a_file_is_no_directory(storage: Storage) -> None:
    warehouse = storage.warehouse
    storage.write(storage.root, "f")
    assert warehouse.exists(f"{storage.root}/f")
    assert not warehouse.is_directory(f"{storage.root}/f")
    assert not warehouse.is_empty(f"{storage.root}/f")
    with pytest.raises(WarehouseError, match=r"cannot make the directory .*/warehouse/f: .*\. Choose another"):
        warehouse.make_directory(f"{storage.root}/f")
    assert storage.files(storage.root) == {"f": b"data"}


def test_names_of_a_directory_and_sizes_of_all_below(storage: Storage) -> None:
    place = storage.write(f"{storage.root}/listed", "a", ".hidden", "deep/er/b", data=b"0123")
    assert storage.warehouse.names(place) == {"a", ".hidden"}
    assert storage.warehouse.sizes(place) == {"a": 4, ".hidden": 4, "deep/er/b": 4}
    assert storage.warehouse.names(f"{place}/none") == set()


def test_files_with_their_times_by_the_storages_clock(storage: Storage) -> None:
    warehouse = storage.warehouse
    place = storage.write(f"{storage.root}/times", "a", "deep/er/b", "deep/c", data=b"0123")
    now = warehouse.time_at(f"{place}/deep")
    assert abs(now / 1_000 - time.time()) < 60
    found = warehouse.statuses(place, within=storage.root)
    assert {name: each.size for name, each in found.items()} == {"a": 4, "deep/er/b": 4, "deep/c": 4}
    # S3 says whole seconds.
    assert all(now - 60_000 < (each.modified_at or 0) <= now + 1_000 for each in found.values())
    assert warehouse.children(place) == {"deep"}
    assert warehouse.children(f"{place}/deep") == {"er"}
    assert warehouse.children(f"{place}/none") == set()
    assert warehouse.statuses(f"{place}/none", within=storage.root) == {}
    with pytest.raises(WarehouseError, match="does not lie within"):
        warehouse.statuses(place, within=f"{storage.root}/other")


def test_a_file_is_read_from_its_beginning(storage: Storage) -> None:
    place = storage.write(f"{storage.root}/read", "full", data=b"0123456789")
    assert storage.warehouse.read_file(f"{place}/full", 4) == b"0123"
    assert storage.warehouse.read_file(f"{place}/full", 100) == b"0123456789"
    assert storage.warehouse.read_range(f"{place}/full", 3, 4) == b"3456"
    assert storage.warehouse.read_range(f"{place}/full", 8, 4) == b"89"
    with pytest.raises(WarehouseError):
        storage.warehouse.read_range(f"{place}/none", 0, 4)
    assert storage.warehouse.read_file(f"{place}/none", 4) is None
    assert storage.warehouse.read_file(place, 4) is None


def test_a_written_file_is_whole_and_never_replaced(storage: Storage) -> None:
    place = f"{storage.root}/written/below/file"
    storage.warehouse.write_file(place, b"first")
    with pytest.raises(WarehouseError, match="cannot write"):
        storage.warehouse.write_file(place, b"second")
    assert storage.warehouse.read_file(place, 100) == b"first"
    assert storage.warehouse.names(f"{storage.root}/written/below") == {"file"}


def test_hidden_files_and_directories_make_it_full(storage: Storage) -> None:
    warehouse = storage.warehouse
    storage.write(f"{storage.root}/a", "_SUCCESS")
    storage.write(f"{storage.root}/b", ".staging/x")
    assert not warehouse.is_empty(f"{storage.root}/a")
    assert not warehouse.is_empty(f"{storage.root}/b")
    assert not warehouse.is_empty(f"{storage.root}/nothing")


def test_what_others_write_is_seen_at_once(storage: Storage) -> None:
    warehouse, table = storage.warehouse, f"{storage.root}/t"
    warehouse.make_directory(table)
    assert warehouse.is_empty(table)
    storage.write(table, "a")
    assert not warehouse.is_empty(table)
    assert warehouse.content_summary(table) == Summary(1, 4)
    storage.fs.rm_file(storage.path(f"{table}/a"))
    assert warehouse.content_summary(table) == Summary(0, 0)


@pytest.mark.parametrize("name", ["ds=10%3A00", "a b", "ü=日本", "%2e%2e", "ds={x}~^$&"])
def test_names_are_taken_literally(storage: Storage, name: str) -> None:
    warehouse = storage.warehouse
    location = storage.write(f"{storage.root}/t/{name}", "part 0%")
    storage.write(f"{storage.root}/t", "other")
    assert warehouse.is_directory(location)
    assert warehouse.content_summary(location) == Summary(1, 4)
    assert warehouse.move_directory(location, f"{storage.root}/u/{name}")
    assert storage.files(f"{storage.root}/u/{name}") == {"part 0%": b"data"}
    warehouse.delete_directory(f"{storage.root}/u/{name}")
    assert storage.files(storage.root) == {"t/other": b"data"}


def test_deleting_takes_all_of_it_and_nothing_else(storage: Storage) -> None:
    warehouse, table = storage.warehouse, f"{storage.root}/t"
    storage.write(table, "a", "p=1/b", "p=1/_hidden", ".h/x")
    storage.write(f"{storage.root}/t1", "a")
    storage.write(storage.root, "t_file")
    warehouse.make_directory(f"{table}/p=2")
    warehouse.delete_directory(table)
    assert not warehouse.exists(table)
    assert storage.files(storage.root) == {"t1/a": b"data", "t_file": b"data"}
    warehouse.delete_directory(table)
    warehouse.delete_directory(f"{storage.root}/t_file")
    assert storage.files(storage.root) == {"t1/a": b"data"}


@pytest.mark.sampled(4)
def test_many_files_are_deleted(storage: Storage) -> None:
    storage.write(f"{storage.root}/t", *(f"p={number % 3}/{number}" for number in range(1_100)))
    assert storage.warehouse.content_summary(f"{storage.root}/t") == Summary(1_100, 4_400)
    storage.warehouse.delete_directory(f"{storage.root}/t")
    assert storage.files(storage.root) == {}


def test_a_moved_directory_arrives_whole(storage: Storage) -> None:
    warehouse, source, target = storage.warehouse, f"{storage.root}/s", f"{storage.root}/db.db/t"
    files = ("a", "p=1/b", "p=1/_hidden", ".h/x")
    storage.write(source, *files)
    storage.write(f"{storage.root}/s1", "a")
    warehouse.make_directory(f"{source}/p=2/q=1")
    assert warehouse.move_directory(source, target)
    assert storage.files(target) == dict.fromkeys(files, b"data")
    assert warehouse.is_empty(f"{target}/p=2/q=1")
    assert not warehouse.exists(source)
    assert not warehouse.move_directory(source, target)
    with pytest.raises(WarehouseError, match="something else is there"):
        warehouse.move_directory(f"{storage.root}/s1", target)
    assert storage.files(f"{storage.root}/s1") == {"a": b"data"}


def test_hdfs_moves_by_one_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers, "hdfs", LocalHdfs)
    warehouse = Warehouse(f"hdfs://nn{tmp_path}/warehouse")
    (tmp_path / "s").mkdir()
    inode = (tmp_path / "s").stat().st_ino
    assert warehouse.move_directory(f"{tmp_path}/s", f"{tmp_path}/new/t")
    assert (tmp_path / "new" / "t").stat().st_ino == inode


def test_a_moved_empty_directory_is_still_one(storage: Storage) -> None:
    warehouse = storage.warehouse
    warehouse.make_directory(f"{storage.root}/s")
    assert warehouse.move_directory(f"{storage.root}/s", f"{storage.root}/t")
    assert warehouse.is_empty(f"{storage.root}/t")
    assert not warehouse.exists(f"{storage.root}/s")


def test_only_an_empty_directory_is_deleted_as_empty(storage: Storage) -> None:
    warehouse, table = storage.warehouse, f"{storage.root}/t"
    assert not warehouse.delete_empty_directory(table)
    warehouse.make_directory(table)
    storage.write(table, "_SUCCESS")
    assert not warehouse.delete_empty_directory(table)
    assert not warehouse.delete_empty_directory(f"{table}/_SUCCESS")
    storage.fs.rm_file(storage.path(f"{table}/_SUCCESS"))
    assert warehouse.delete_empty_directory(table)
    assert not warehouse.exists(table)


def test_files_count_as_in_hive(storage: Storage) -> None:
    """The tree and the numbers are those that Hive 2.3's HiveStatsUtils was tried with."""
    warehouse, table = storage.warehouse, f"{storage.root}/_t"
    storage.write(table, "f", data=b"123456")
    storage.write(table, "a/g", data=b"12")
    storage.write(table, "a/b/h", data=b"123")
    storage.write(table, "empty", data=b"")
    storage.write(table, "_h/x", ".g/x", "_SUCCESS", ".f.crc", "a/_tmp/z")
    warehouse.make_directory(f"{table}/p=1")
    assert warehouse.content_summary(table) == Summary(files=4, bytes=11)
    assert warehouse.content_summary(f"{table}/_h") == Summary(1, 4)
    assert warehouse.content_summary(f"{table}/_SUCCESS") == Summary(1, 4)
    assert warehouse.content_summary(f"{table}/p=1") == Summary(0, 0)
    assert warehouse.content_summary(f"{table}/nothing") == Summary(0, 0)
    assert Summary(1, 4).erasure_coded_files == 0


def test_roots_and_what_contains_them_stay(storage: Storage) -> None:
    warehouse = storage.warehouse
    storage.write(storage.root, "db.db/t/a")
    top = storage.root.removesuffix("/warehouse")
    for location in (storage.root, f"{storage.root}/db.db/..", top, f"{storage.root}/../warehouse/"):
        with pytest.raises(WarehouseError, match="cannot delete"):
            warehouse.delete_directory(location)
        with pytest.raises(WarehouseError, match="cannot delete"):
            warehouse.delete_empty_directory(location)
        with pytest.raises(WarehouseError, match="cannot move"):
            warehouse.move_directory(location, f"{top}/elsewhere")
    assert storage.files(storage.root) == {"db.db/t/a": b"data"}


def test_the_root_goes_by_all_names_of_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(drivers, "s3", MemoryFileSystem)
    warehouse = Warehouse("s3a://bucket/top/wh")
    for location in ("s3://bucket/top/wh", "s3n://bucket/top"):
        with pytest.raises(WarehouseError, match="the warehouse s3a://bucket/top/wh is there"):
            warehouse.delete_directory(location)


def test_nothing_outside_is_deleted(storage: Storage) -> None:
    warehouse, table = storage.warehouse, f"{storage.root}/t"
    storage.write(table, "p=1/a", "p=2/a")
    storage.write(f"{storage.root}/t1", "a")
    for location in (f"{storage.root}/t1", f"{table}/../t1", storage.root, f"{storage.root}/t1/t"):
        with pytest.raises(WarehouseError, match=f"does not lie within {table}"):
            warehouse.delete_directory(location, within=table)
    warehouse.delete_directory(f"{table}/p=1", within=table)
    assert storage.files(storage.root) == {"t/p=2/a": b"data", "t1/a": b"data"}
    warehouse.delete_directory(f"{table}/", within=table)
    assert storage.files(storage.root) == {"t1/a": b"data"}


def test_bad_locations_are_refused_everywhere(local: Warehouse) -> None:
    calls: list[Callable[[str], object]] = [
        local.exists,
        local.is_directory,
        local.is_empty,
        local.content_summary,
        local.make_directory,
        local.delete_directory,
        local.delete_empty_directory,
        lambda location: local.move_directory(location, "/x"),
        lambda location: local.move_directory("/x", location),
        lambda location: local.delete_directory("/x", within=location),
    ]
    for call in calls:
        for location in ("", "relative", "/../x", "http://host/x", "memory://m/x", "/a\0", "file://host/x"):
            with pytest.raises(WarehouseError, match="cannot use"):
                call(location)


def test_links_are_deleted_not_followed(local: Warehouse, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    table = tmp_path / "warehouse" / "t"
    table.mkdir()
    (table / "directory").symlink_to(outside)
    (table / "file").symlink_to(outside / "keep")
    (table / "nothing").symlink_to("nowhere")
    (tmp_path / "warehouse" / "link").symlink_to(outside)
    local.delete_directory(f"file:{table}")
    local.delete_directory(f"file:{tmp_path}/warehouse/link")
    assert list((tmp_path / "warehouse").iterdir()) == []
    assert (outside / "keep").exists()


def test_within_sees_through_links(local: Warehouse, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "q=1").mkdir(parents=True)
    table = tmp_path / "warehouse" / "t"
    table.mkdir()
    (table / "p=1").symlink_to(outside)
    with pytest.raises(WarehouseError, match="does not lie within"):
        local.delete_directory(f"{table}/p=1/q=1", within=str(table))
    assert (outside / "q=1").exists()
    (tmp_path / "alias").symlink_to(tmp_path / "warehouse")
    (table / "p=2").mkdir()
    local.delete_directory(f"{tmp_path}/alias/t/p=2", within=str(table))
    assert not (table / "p=2").exists()


def test_the_root_is_safe_behind_links(local: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "up").symlink_to(tmp_path.parent)
    with pytest.raises(WarehouseError, match="the warehouse"):
        local.delete_directory(f"{tmp_path}/up/{tmp_path.name}")
    assert (tmp_path / "warehouse").exists()


def test_a_root_that_is_a_link_is_safe_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "disk" / "data").mkdir(parents=True)
    (tmp_path / "mounts").mkdir()
    root = tmp_path / "mounts" / "warehouse"
    root.symlink_to(tmp_path / "disk" / "data")
    warehouse = Warehouse(str(root))
    for place in (root, root.parent, tmp_path / "disk" / "data", tmp_path / "disk"):
        with pytest.raises(WarehouseError, match="the warehouse"):
            warehouse.delete_directory(f"file:{place}")
    assert root.is_dir()


def test_a_root_is_safe_before_it_is_made(tmp_path: Path) -> None:
    warehouse = Warehouse(f"{tmp_path}/above/warehouse")
    (tmp_path / "above").mkdir()
    with pytest.raises(WarehouseError, match="the warehouse"):
        warehouse.delete_directory(f"file:{tmp_path}/above")
    assert (tmp_path / "above").is_dir()


def test_of_many_directories_all_go_that_can(storage: Storage) -> None:
    warehouse = storage.warehouse
    places = [f"{storage.root}/t/p={number}" for number in range(3)]
    made: set[str] = set()
    warehouse.make_directories(places, made)
    for place in places:
        storage.write(place, "a")
    [failure] = warehouse.delete_directories([places[0], storage.root, *places[1:]])
    assert str(failure).startswith(f"cannot delete {storage.root}")
    assert not storage.files(storage.root)


def test_links_count_as_hadoop_counts_them(local: Warehouse, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("out\n")
    table = tmp_path / "warehouse" / "t"
    table.mkdir()
    (table / "link").symlink_to(outside / "f")
    (table / "directory").symlink_to(outside)
    (table / "nothing").symlink_to("nowhere")
    (table / "self").symlink_to("self")
    (table / "up").symlink_to(table)
    assert local.content_summary(str(table)) == Summary(2, 8)


def test_what_can_t_be_listed_counts_as_nothing(
    local: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "warehouse" / "t"
    (table / "locked").mkdir(parents=True)
    (table / "f").write_text("x")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("locked"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert local.content_summary(str(table)) == Summary(0, 0)


def test_deep_trees_end_in_an_error_at_worst(local: Warehouse, tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "t"
    deep = f"{table}/{'d/' * 1_500}"
    subprocess.run(["mkdir", "-p", deep], check=True)
    try:
        Path(deep, "f").write_text("x")
        assert local.content_summary(str(table)) == Summary(1, 1)
        try:
            local.delete_directory(str(table))
        except WarehouseError as error:
            assert "recursion" in str(error)  # Python before 3.13 deletes no deeper than it calls
        else:
            assert not table.exists()
        try:
            local.make_directory(deep.replace("/d", "/e"))
        except WarehouseError as error:
            assert "recursion" in str(error)
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "warehouse")], check=True)


def test_of_many_threads_one_makes_the_directory(local: Warehouse, tmp_path: Path) -> None:
    for attempt in range(20):
        start = threading.Barrier(8)

        def make(_: int, attempt: int = attempt, start: threading.Barrier = start) -> bool:
            start.wait()
            return local.make_directory(f"{tmp_path}/warehouse/new{attempt}/p=1/q=2")

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(make, range(8))) == 1


def test_many_threads_delete_one_directory(local: Warehouse, tmp_path: Path) -> None:
    table = tmp_path / "warehouse" / "t"
    for number in range(300):
        (table / f"p={number % 10}").mkdir(parents=True, exist_ok=True)
        (table / f"p={number % 10}" / str(number)).touch()
    start = threading.Barrier(4)

    def delete(_: int) -> None:
        start.wait()
        local.delete_directory(str(table))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(delete, range(4)))
    assert not table.exists()


def test_failures_say_what_where_and_what_to_do(local: Warehouse, tmp_path: Path) -> None:
    long = "x" * 300
    with pytest.raises(WarehouseError) as failure:
        local.make_directory(f"/tmp/{long}")
    assert str(failure.value) == (
        f"/tmp/{long} is not a directory or unable to create one: cannot make the directory file:/tmp/{long}:"
        " file name too long. Check the disk, then try again"
    )
    (tmp_path / "file").touch()
    with pytest.raises(WarehouseError, match=r"file:.*/file/x: .*\. Choose another location"):
        local.make_directory(f"{tmp_path}/file/x")


def test_any_driver_s_exception_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    class DriverError(Exception):
        pass

    def fail(*_: object, **__: object) -> None:
        raise DriverError("503 slow down")

    warehouse = Warehouse("memory://m/wh", schemes=["memory"])
    monkeypatch.setattr(MemoryFileSystem, "info", fail)
    with pytest.raises(WarehouseError, match=r"look at memory://m/wh/t: 503 slow down\. Check .* memory:") as failure:
        warehouse.exists("memory://m/wh/t")
    assert isinstance(failure.value.__cause__, DriverError)


@pytest.mark.parametrize(
    ("location", "module", "extra"),
    [
        ("s3a://bucket/x", "s3fs", "s3"),
        ("s3://bucket/x", "s3fs", "s3"),
        ("gs://bucket/x", "gcsfs", "gcs"),
        ("abfss://c@account.dfs.core.windows.net/x", "adlfs", "azure"),
        ("hdfs://nn:8020/x", "pyarrow.fs", "hdfs"),
    ],
)
def test_a_missing_driver_is_named(
    location: str, module: str, extra: str, local: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for name in list(drivers):
        monkeypatch.delitem(drivers, name)
    for call in (local.exists, local.make_directory, local.delete_directory, local.content_summary):
        with pytest.raises(WarehouseError, match=rf"pip install 'lake-metastore\[{extra}\]'"):
            call(location)


def test_options_reach_the_driver() -> None:
    class Recorder(MemoryFileSystem):
        protocol = "recorder"
        made: list[dict[str, Any]] = []
        cachable = False

        def __init__(self, **options: Any) -> None:
            self.made.append(options)
            super().__init__(**options)

    fsspec.register_implementation("abfs", Recorder, clobber=True)
    fsspec.register_implementation("s3", Recorder, clobber=True)
    try:
        options = {"s3": {"key": "a"}, "s3a": {"key": "b"}, "abfs": {"account_key": "k"}}
        warehouse = Warehouse("/wh", options=options)
        warehouse.exists("s3://x/y")
        warehouse.exists("s3a://x/y")
        warehouse.exists("s3n://x/y")
        warehouse.exists("abfss://c@account.dfs.core.windows.net/x")
    finally:
        del drivers["abfs"], drivers["s3"]
    keys = [made.get("key") or (made["account_name"], made["account_key"]) for made in Recorder.made]
    assert keys == ["a", "b", "a", ("account", "k")]
    assert all(made["use_listings_cache"] is False for made in Recorder.made)


def test_memory_is_for_those_who_ask() -> None:
    assert "memory" not in DEFAULT_SCHEMES
    assert "file" in DEFAULT_SCHEMES
