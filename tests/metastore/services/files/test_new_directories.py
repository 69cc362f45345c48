"""Directories that are made before the transaction that needs them."""

from pathlib import Path

import pytest

from lake.protocol.hive import AlreadyExistsException
from metastore.services.files.new_directories import new_directories
from metastore.store import Conflict, DatabaseUnavailable
from metastore.warehouse import Warehouse

TAKEN = AlreadyExistsException("there is one")


@pytest.mark.parametrize(
    ("failure", "raised", "stays"),
    [
        (ValueError("no"), ValueError, False),
        (KeyboardInterrupt(), KeyboardInterrupt, False),
        (Conflict("there is one"), AlreadyExistsException, True),
        (DatabaseUnavailable("gone"), DatabaseUnavailable, True),
    ],
)
def test_what_was_made_goes_with_the_failure(
    tmp_path: Path, failure: BaseException, raised: type[BaseException], stays: bool
) -> None:
    warehouse = Warehouse(str(tmp_path))
    new, used, old = (tmp_path / name for name in ("new", "used", "old"))
    old.mkdir()
    (old / "a").touch()
    with pytest.raises(raised), new_directories(warehouse, TAKEN) as made:
        warehouse.make_directories([f"file:{each}" for each in (new, used, old)], made)
        (used / "a").touch()
        raise failure
    assert (new.exists(), used.exists(), old.exists()) == (stays, True, True)


def test_what_was_made_stays(tmp_path: Path) -> None:
    warehouse = Warehouse(str(tmp_path))
    with new_directories(warehouse, TAKEN) as made:
        warehouse.make_directories([f"file:{tmp_path}/new"], made)
    assert made == {f"file:{tmp_path}/new"}
    assert (tmp_path / "new").is_dir()
