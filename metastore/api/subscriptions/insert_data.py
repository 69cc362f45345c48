"""What a client says about inserted files: Hive 2.3 numbers the fields of InsertEventRequestData in another way."""

from thrift.Thrift import TType

from lake.protocol.codec.binary import STOP, decode
from lake.protocol.hive import InsertEventRequestData
from lake.protocol.struct import Struct, fields


class _First(Struct):
    """Field 1 as Hive 2.3 sends it."""

    __slots__ = ("filesAdded", "unknown")
    thrift_spec = fields(None, (1, "filesAdded", TType.LIST, (TType.STRING, "UTF8", False)))

    def __init__(self) -> None:
        self.filesAdded: list[str] | None = None


def understood(value: InsertEventRequestData) -> InsertEventRequestData:
    """The same as Hive 4 would have sent it; `value` was decoded with its unknown fields.

    In 2.3 the files are field 1, where later versions have a truth value, and their checksums field 2.
    """
    files = decode(_First, getattr(value, "unknown", b"") + STOP).filesAdded
    if files is None:
        return value
    return InsertEventRequestData(filesAdded=files, filesAddedChecksum=value.filesAdded)
