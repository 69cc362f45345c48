"""Which positions of a lake table can be shown, by its files alone."""

import random
import time
from collections.abc import Callable, Collection, Sequence
from typing import cast

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.formats.iceberg_overlays import OverlayName, overlay_key
from lake.protocol.lake import DataFile, SnapshotRequest, SnapshotResponse, TableReference
from metastore.iceberg.errors import RestError, unavailable
from metastore.iceberg.shown.lake_files import Exact, Overlays, exact_positions

TABLE = TableReference(database="d", table="t")
BASE = "file:/t"
HEAD = 12


class Worker:
    """Answers with some files."""

    def __init__(self, files: Sequence[DataFile]) -> None:
        self._files = files

    def lake_get_snapshot(self, request: SnapshotRequest) -> SnapshotResponse:
        return SnapshotResponse(files=[*self._files])


def file(bucket: int, name: str, kind: str, added: int, removed: int | None = None) -> DataFile:
    path = f"{bucket}/{name}"
    return DataFile("p=1", str(bucket), "s", path, kind, 10, 1, addedAt=added, removedAt=removed)


def key_of(files: Sequence[DataFile]) -> str:
    return overlay_key(BASE, [(each.path or "", each.size or 0) for each in files], {})


def found(
    files: Sequence[DataFile],
    head: int,
    compactions: Collection[int] = (),
    merged: Collection[str] = (),
    check_time: Callable[[], None] = lambda: None,
) -> list[Exact]:
    """`merged`: the keys of files that stand for log files."""
    overlays = Overlays(BASE, {}, {OverlayName(each, 1, 0).rows_file: 10 for each in merged})
    client = cast(ThriftClient, Worker(files))
    return list(exact_positions(client, TABLE, head, 1, compactions, overlays, check_time))


def live(files: Sequence[DataFile], bucket: int, position: int) -> list[DataFile]:
    def is_live(each: DataFile) -> bool:
        return (each.addedAt or 0) <= position < (HEAD + 9 if each.removedAt is None else each.removedAt)

    return [each for each in files if each.fileGroup == str(bucket) and is_live(each)]


def expected(
    files: Sequence[DataFile], compactions: Collection[int], merged: Collection[str]
) -> dict[int, dict[str, list[DataFile]]]:
    """The positions that can be shown, with what compactions made of buckets: each looked at by itself."""
    shown: dict[int, dict[str, list[DataFile]]] = {}
    for position in range(1, HEAD + 1):
        became: dict[str, list[DataFile]] = {}
        for bucket in range(3):
            here = live(files, bucket, position)
            if all(each.kind != "log" for each in here) or key_of(here) in merged:
                continue
            [at, *others] = {each.removedAt for each in here}
            replaced = [each for each in files if each.fileGroup == str(bucket) and each.removedAt == at]
            if others or at not in compactions or len(replaced) != len(here):
                break
            became[str(bucket)] = [
                each for each in files if each.fileGroup == str(bucket) and each.addedAt == at and each.kind != "log"
            ]
        else:
            shown[position] = became
    return shown


@pytest.mark.parametrize("seed", range(60))
def test_as_each_position_by_itself(seed: int) -> None:
    chance = random.Random(seed)
    files: list[DataFile] = []
    compactions = {each for each in range(2, HEAD + 1) if chance.random() < 0.4}
    for bucket in range(3):
        there: list[DataFile] = []
        for position in range(1, HEAD + 1):
            if position in compactions and there and chance.random() < 0.7:
                gone = there if chance.random() < 0.8 else there[1:]
                for each in gone:
                    each.removedAt = position
                there = [each for each in there if each.removedAt is None]
                kind = "base"
            elif chance.random() < 0.4:
                kind = "log" if there and chance.random() < 0.7 else "base"
            else:
                continue
            there.append(file(bucket, f"{position}", kind, position))
            files.append(there[-1])
    merged = {
        key_of(live(files, bucket, position))
        for bucket in range(3)
        for position in range(1, HEAD + 1)
        if chance.random() < 0.3
    }
    given = found(files, HEAD, compactions, merged)
    by_itself = expected(files, compactions, merged)
    assert [each.position for each in given] == sorted({each.position for each in given}, reverse=True)
    for each in given:
        assert {bucket.group: list(some) for bucket, some in each.compacted.items()} == by_itself[each.position]
    with_logs = {each.fileGroup for each in files if each.kind == "log"}
    moments = {m for each in files if each.fileGroup in with_logs for m in (each.addedAt, each.removedAt) if m}
    assert {each for each in by_itself if each == HEAD or (each + 1) in moments} == {each.position for each in given}


@pytest.mark.parametrize("merged", [(), ("0" * 40,)], ids=["nothing is merged", "something is"])
def test_many_log_files_of_a_bucket(merged: Collection[str]) -> None:
    """None is fit but the first position. It takes a time that grows with the files, not with their square."""
    count = 20_000 if not merged else 1_000
    files = [file(0, "base", "base", 1), *(file(0, str(each), "log", each) for each in range(2, count))]
    start = time.process_time()
    assert [each.position for each in found(files, count, (), merged)] == [1]
    assert time.process_time() - start < 5


def test_it_ends_when_the_time_is_over() -> None:
    calls = 0

    def check_time() -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise unavailable("the time is over")

    files = [file(0, "base", "base", 1), *(file(0, str(each), "log", each) for each in range(2, 50))]
    with pytest.raises(RestError, match="the time is over"):
        found(files, 50, (), (), check_time)
