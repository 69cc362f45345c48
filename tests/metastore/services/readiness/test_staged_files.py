"""What is done to single files, on all kinds of storage: staged files join partitions, success files come and go."""

import os
from pathlib import Path

import pytest

from metastore.warehouse import Warehouse, WarehouseError
from tests.metastore.warehouse.test_directories import Storage


def test_files_below_a_directory(storage: Storage) -> None:
    place = f"{storage.root}/t/.staging/w/0/a"
    assert storage.warehouse.files(place, within=f"{storage.root}/t") == set()
    storage.write(place, "a", "dt=1/b", "dt=1/hr=%3A 2/c", "_temporary/0/d")
    storage.write(f"{storage.root}/t/.staging/w/0/ab", "e")
    storage.warehouse.make_directory(f"{place}/empty")
    expected = {"a", "dt=1/b", "dt=1/hr=%3A 2/c", "_temporary/0/d"}
    assert storage.warehouse.files(place, within=f"{storage.root}/t") == expected


def test_files_elsewhere_are_nobody_s_business(storage: Storage) -> None:
    for place, within in ((f"{storage.root}/u/x", f"{storage.root}/t"), (f"{storage.root}/tt", f"{storage.root}/t")):
        storage.write(place, "a")
        with pytest.raises(WarehouseError, match="does not lie within"):
            storage.warehouse.files(place, within=within)


def test_moving(storage: Storage) -> None:
    source, target = f"{storage.root}/t/.staging/a", f"{storage.root}/t/dt=1/hr=%3A 2"
    storage.write(source, "x", "y")
    assert storage.warehouse.move_file(f"{source}/x", f"{target}/x") is True
    assert storage.files(target) == {"x": b"data"}
    assert storage.files(source) == {"y": b"data"}
    # Once more, since nobody knows whether it was done.
    assert storage.warehouse.move_file(f"{source}/x", f"{target}/x") is False
    assert storage.files(target) == {"x": b"data"}


def test_moving_what_was_copied_before_a_crash(storage: Storage) -> None:
    source, target = f"{storage.root}/t/.staging/a", f"{storage.root}/t/dt=1"
    storage.write(source, "x")
    storage.write(target, "x", data=b"da")
    assert storage.warehouse.move_file(f"{source}/x", f"{target}/x") is True
    assert (storage.files(target), storage.files(source)) == ({"x": b"data"}, {})


def test_moving_what_is_at_neither_place(storage: Storage) -> None:
    with pytest.raises(WarehouseError, match="cannot move"):
        storage.warehouse.move_file(f"{storage.root}/a/x", f"{storage.root}/b/x")


def test_empty_files(storage: Storage) -> None:
    place = f"{storage.root}/t/dt=1"
    for _ in range(2):
        storage.warehouse.write_empty_file(f"{place}/_SUCCESS")
        assert storage.files(place) == {"_SUCCESS": b""}
    storage.write(place, "full")
    storage.warehouse.write_empty_file(f"{place}/full")
    assert storage.files(place) == {"_SUCCESS": b"", "full": b"data"}
    for _ in range(2):
        storage.warehouse.delete_file(f"{place}/_SUCCESS")
        assert storage.files(place) == {"full": b"data"}


def test_empty_trees(storage: Storage) -> None:
    place = f"{storage.root}/t"
    storage.warehouse.delete_empty_tree(place)
    storage.warehouse.make_directory(place)
    storage.warehouse.delete_empty_tree(place)
    assert not storage.warehouse.exists(place)
    storage.write(f"{place}/dt=1/hr=1", "a")
    storage.warehouse.delete_empty_tree(place)
    assert storage.files(place) == {"dt=1/hr=1/a": b"data"}


def test_directories_of_an_empty_tree(tmp_path: Path) -> None:
    """Where there are such, all go that lead to no file."""
    warehouse = Warehouse(f"file:{tmp_path}/warehouse")
    table = tmp_path / "warehouse/t"
    for name in ("dt=1/hr=1", "dt=1/hr=2", "dt=2", "dt=3/hr=1"):
        (table / name).mkdir(parents=True)
    (table / "dt=3/hr=1/.hidden").touch()
    warehouse.delete_empty_tree(f"file:{table}")
    assert {str(path.relative_to(table)) for path in table.rglob("*")} == {"dt=3", "dt=3/hr=1", "dt=3/hr=1/.hidden"}


def test_links_are_no_files(tmp_path: Path) -> None:
    warehouse = Warehouse(f"file:{tmp_path}/warehouse")
    staging = tmp_path / "warehouse/t/.staging/a"
    staging.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    for name, target in (("file", tmp_path / "secret"), ("directory", tmp_path), ("self", staging)):
        (staging / name).symlink_to(target)
    os.mkfifo(staging / "pipe")
    (staging / "real").touch()
    assert warehouse.files(f"file:{staging}", within=f"file:{tmp_path}/warehouse/t") == {"real"}
    (staging.parent / "link").symlink_to(tmp_path)
    with pytest.raises(WarehouseError, match="does not lie within"):
        warehouse.files(f"file:{staging.parent}/link", within=f"file:{tmp_path}/warehouse/t")
