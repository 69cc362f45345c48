"""Assertions about answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException, TException

from lake.protocol.struct import Struct

# Structs that Hive 4 extended: the last field id that Hive 2.3 knows. A server may answer with more.
HIVE_2_FIELDS = {"Database": 7, "Table": 15, "Partition": 8, "SerDeInfo": 3}


@contextmanager
def refused(*kinds: type[TException], message: str = "") -> Iterator[None]:
    """The call in the block raises one of `kinds`, and its message contains `message`.

    Several kinds are given where Hive 2.3 answers with an accident (a null pointer, an exception that the method
    doesn't declare) and later versions with something better: a client must expect both.
    """
    with pytest.raises(kinds) as caught:
        yield
    assert message in (getattr(caught.value, "message", None) or "")


# An exception that the method doesn't declare, or a result that is neither a value nor an exception.
UNDECLARED = TApplicationException


def common(value: Any) -> Any:
    """The value without the fields that only Hive 4 knows, in place."""
    if isinstance(value, list):
        return [common(item) for item in value]
    if isinstance(value, Struct):
        last = HIVE_2_FIELDS.get(type(value).__name__)
        for entry in value.thrift_spec:
            if entry is not None:
                if last is not None and entry[0] > last:
                    setattr(value, entry[2], None)
                else:
                    common(getattr(value, entry[2]))
    return value


def files_below(directory: Path) -> list[str]:
    """The files below a directory by relative path, sorted; checksum files of Hadoop's local file system left out."""
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and not path.name.endswith(".crc")
    )


def directories_below(directory: Path) -> list[str]:
    """The directories below a directory by relative path, sorted."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_dir())
