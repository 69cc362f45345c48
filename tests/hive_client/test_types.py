"""Our types against the classes of Hive's client: whatever field it knows, we know by the same number and type."""

import zipfile
from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import get_field
from py4j.protocol import Py4JJavaError
from thrift.Thrift import TType

from lake.protocol import hive
from lake.protocol.services import METHODS
from tests.hive_client.conftest import API
from tests.support.jvm import pyspark_jars

# Hive 4 gave these numbers to other fields, and has others under them. Each side skips what it doesn't expect.
DIFFERENT_IN_HIVE_4 = {
    ("AddDynamicPartitions", 2),
    ("AddDynamicPartitions", 4),
    ("AddDynamicPartitions", 5),
    ("GetOpenTxnsResponse", 2),
    ("InsertEventRequestData", 1),
    ("Table", 16),
}
ENUM = 16  # on the wire an I32


def class_names() -> list[str]:
    jars = pyspark_jars()
    assert jars is not None
    prefix = API.replace(".", "/")
    with zipfile.ZipFile(next(jars.glob("hive-metastore-*.jar"))) as jar:
        files = [name for name in jar.namelist() if name.startswith(prefix) and name.endswith(".class")]
    return [name.removeprefix(prefix).removesuffix(".class") for name in files]


def java_fields(jvm: Any, name: str) -> Iterator[tuple[int, int]]:
    """The numbers and wire types of a struct's fields; none if the class is no struct."""
    try:
        described = jvm.java.lang.Class.forName(API + name).getField("metaDataMap").get(None)
    except Py4JJavaError:
        return
    for field in described:
        type_ = get_field(get_field(described[field], "valueMetaData"), "type")
        yield field.getThriftFieldId(), TType.I32 if type_ == ENUM else type_


def our_fields(name: str) -> dict[int, int]:
    outer, _, inner = name.partition("$")
    if outer == "ThriftHiveMetastore":
        method_name, _, part = inner.rpartition("_")
        method = METHODS[method_name]
        spec = method.args_spec if part == "args" else method.result_spec
    else:
        spec = getattr(hive, name).thrift_spec
    return {entry[0]: entry[1] for entry in spec or () if entry is not None}


def test_every_field_is_known(jvm: Any) -> None:
    different, structs = [], 0
    for name in class_names():
        theirs = dict(java_fields(jvm, name))
        if not theirs:
            continue
        structs += 1
        ours = our_fields(name)
        different += [
            (name, number)
            for number, type_ in theirs.items()
            if ours.get(number) != type_ and (name, number) not in DIFFERENT_IN_HIVE_4
        ]
    assert different == []
    assert structs > 400
