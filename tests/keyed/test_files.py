"""Files of keyed tables: what lies where an instant wrote, and isn't among its files, is removed."""

from pathlib import Path

import pyarrow as pa

from metastore.client.buckets import Bucket, BucketWriter, Layout
from metastore.formats.keyed_table import KeyedTable

TABLE = KeyedTable(key=("id",))
ROWS = pa.table({"id": [1, 2]})


def test_files_of_attempts_that_were_not_taken_are_removed(tmp_path: Path) -> None:
    directory = tmp_path / "t/.instants/1.commit"
    writer = BucketWriter(Layout(TABLE, ROWS.schema, f"file:{tmp_path}/t"), "1", f"file:{directory}", "x/1.commit")
    bucket = Bucket("day=2026-01-01 00%3A00", "bucket-00000")
    taken = writer.write(bucket, ROWS, [])
    writer.write(bucket, ROWS, [])  # a task that died after it had written
    (directory / "_SUCCESS").touch()
    writer.remove_others(taken)
    left = sorted(str(each.relative_to(directory)) for each in directory.rglob("*") if each.is_file())
    assert left == sorted(["_SUCCESS", taken[0].path.removeprefix("x/1.commit/")])


def test_without_a_directory_there_is_nothing_to_remove(tmp_path: Path) -> None:
    writer = BucketWriter(Layout(TABLE, ROWS.schema, f"file:{tmp_path}"), "1", f"file:{tmp_path}/none", "none")
    writer.remove_others([])
