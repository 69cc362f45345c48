"""Values of all types: a snapshot and the log give the same text, without losing a digit."""

import json

import pytest

from lake.capture.errors import CaptureError
from lake.capture.mysql.values import column_of
from tests.lake.capture.mysql.conftest import Source

TYPES: dict[str, tuple[str, str, list[tuple[str, object]]]] = {
    # by column: its type, the lake's, and values as SQL and as JSON
    "t": ("TINYINT", "tinyint", [("-128", -128), ("127", 127)]),
    "tu": ("TINYINT UNSIGNED", "smallint", [("255", 255)]),
    "b": ("BOOL", "tinyint", [("TRUE", 1)]),
    "s": ("SMALLINT", "smallint", [("-32768", -32768)]),
    "su": ("SMALLINT UNSIGNED", "int", [("65535", 65535)]),
    "m": ("MEDIUMINT", "int", [("-8388608", -8388608), ("8388607", 8388607)]),
    "mu": ("MEDIUMINT UNSIGNED", "int", [("16777215", 16777215)]),
    "i": ("INT", "int", [("-2147483648", -2147483648)]),
    "iu": ("INT UNSIGNED", "bigint", [("4294967295", 4294967295)]),
    "iz": ("INT(8) ZEROFILL", "bigint", [("42", 42)]),
    "l": ("BIGINT", "bigint", [("-9223372036854775808", -9223372036854775808)]),
    "lu": ("BIGINT UNSIGNED", "decimal(20,0)", [("18446744073709551615", 18446744073709551615)]),
    "d": (
        "DECIMAL(30,10)",
        "decimal(30,10)",
        [("-12345678901234567890.0123456789", "raw:-12345678901234567890.0123456789")],
    ),
    "d0": ("DECIMAL(5,0)", "decimal(5,0)", [("-99999", -99999), ("0", 0)]),
    "d1": ("DECIMAL(4,4)", "decimal(4,4)", [("-0.0001", "raw:-0.0001"), ("0.5", "raw:0.5000")]),
    "d9": (
        "DECIMAL(18,9)",
        "decimal(18,9)",
        [("123456789.987654321", "raw:123456789.987654321"), ("7", "raw:7.000000000")],
    ),
    "dz": ("DECIMAL(8,2) ZEROFILL", "decimal(8,2)", [("3.5", "raw:3.50")]),
    "d65": ("DECIMAL(65,30)", "string", [("1.5", f"1.5{'0' * 29}")]),
    "f": (
        "FLOAT",
        "float",
        [("0.1", "raw:0.1"), ("-3.4028235e38", "raw:-3.4028235e+38"), ("16777217", "raw:1.6777216e+07")],
    ),
    "g": ("DOUBLE", "double", [("0.1", "raw:0.1"), ("1.7976931348623157e308", "raw:1.7976931348623157e+308")]),
    "y": ("YEAR", "int", [("2026", 2026), ("'0000'", 0)]),
    "dt": (
        "DATE",
        "date",
        [("'2026-11-24'", "2026-11-24"), ("'0000-00-00'", "0000-00-00"), ("'9999-12-31'", "9999-12-31")],
    ),
    "dm": (
        "DATETIME(6)",
        "timestamp_ntz",
        [
            ("'1000-01-01 23:59:59.000001'", "1000-01-01 23:59:59.000001"),
            ("'0000-00-00'", "0000-00-00 00:00:00.000000"),
            ("'2026-00-07 01:02:03.5'", "2026-00-07 01:02:03.500000"),
        ],
    ),
    "dm0": ("DATETIME", "timestamp_ntz", [("'2026-11-24 01:02:03'", "2026-11-24 01:02:03")]),
    "dm3": ("DATETIME(3)", "timestamp_ntz", [("'2026-11-24 01:02:03.05'", "2026-11-24 01:02:03.050")]),
    "ts": (
        "TIMESTAMP(3) NULL",
        "timestamp",
        [("'2026-11-24 01:02:03.007'", "2026-11-24 01:02:03.007+00"), ("'0000-00-00'", "0000-00-00 00:00:00.000+00")],
    ),
    "ts0": ("TIMESTAMP NULL", "timestamp", [("'2038-01-19 03:14:07'", "2038-01-19 03:14:07+00")]),
    "ti": (
        "TIME(6)",
        "string",
        [
            ("'-838:59:59.999999'", "-838:59:59.999999"),
            ("'-00:00:00.5'", "-00:00:00.500000"),
            ("'25:00'", "25:00:00.000000"),
        ],
    ),
    "ti0": ("TIME", "string", [("'-01:02:03'", "-01:02:03")]),
    "ti1": ("TIME(1)", "string", [("'-10:00:00.3'", "-10:00:00.3")]),
    "c": ("CHAR(10)", "string", [("'x  '", "x"), ("'ä€😀'", "ä€😀")]),
    "v": ("VARCHAR(300)", "string", [("''", ""), ("'a\"\\\\\\n\\t'", 'a"\\\n\t'), ("REPEAT('ü', 300)", "ü" * 300)]),
    "vl": ("VARCHAR(50) CHARACTER SET latin1", "string", [("'grün €'", "grün €"), ("_latin1 0x8190", "\x81\x90")]),
    "vu": ("VARCHAR(50) CHARACTER SET ucs2", "string", [("'grün €'", "grün €")]),
    "x": ("MEDIUMTEXT", "string", [("REPEAT('abc', 30000)", "abc" * 30000)]),
    "n": ("BINARY(5)", "binary", [("0x0100", "\\x0100000000"), ("0xFF00FF00FF", "\\xff00ff00ff")]),
    "vb": ("VARBINARY(300)", "binary", [("0x00FF", "\\x00ff"), ("''", "\\x")]),
    "bl": ("LONGBLOB", "binary", [("0xDEADBEEF", "\\xdeadbeef")]),
    "bi": ("BIT(10)", "string", [("b'1000000001'", "1000000001"), ("b'1'", "0000000001")]),
    "bi1": ("BIT(1)", "string", [("b'1'", "1")]),
    "e": ("ENUM('small','mid,dle','größe')", "string", [("'mid,dle'", "mid,dle"), ("'größe'", "größe")]),
    "st": ("SET('a','b','c')", "string", [("'c,a'", "a,c"), ("''", "")]),
    "j": ("JSON", "string", [("'{\"a\": [1, 2.50]}'", '{"a": [1, 2.50]}')]),
    "u": (
        "UUID",
        "string",
        [
            ("'123E4567-e89b-12d3-a456-426655440000'", "123e4567-e89b-12d3-a456-426655440000"),
            ("'00000000-0000-0000-0000-000000000000'", "00000000-0000-0000-0000-000000000000"),
            ("'ffffffff-ffff-7fff-bfff-ff00ff00ff00'", "ffffffff-ffff-7fff-bfff-ff00ff00ff00"),
        ],
    ),
    "i6": ("INET6", "string", [("'2001:db8::ff00:42:8329'", "2001:db8::ff00:42:8329"), ("'::'", "::")]),
    "i4": ("INET4", "string", [("'192.0.2.0'", "192.0.2.0"), ("'0.0.0.0'", "0.0.0.0")]),
    "n16": ("BINARY(16)", "binary", [("0x01", "\\x01" + 15 * "00")]),
    "p": ("POINT", "binary", [("POINT(1, 2)", "\\x00000000" + "0101000000" + "000000000000f03f" + "0000000000000040")]),
}


def values_of(number: int) -> dict[str, tuple[str, object]]:
    """The values of a row, as SQL and as JSON; the last of each column again where there are no more."""
    return {name: values[min(number, len(values) - 1)] for name, (_, _, values) in TYPES.items()}


def test_a_snapshot_and_the_log_have_the_same_values(source: Source) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items())
    source.run("SET sql_mode = ''")
    source.run("SET time_zone = '+00:00'")
    count = max(len(values) for _, _, values in TYPES.values())
    for table in ("before", "after"):
        source.run(f"CREATE TABLE `{table}` (id INT PRIMARY KEY, {columns})")
        for number in range(count):
            values = ", ".join(sql for sql, _ in values_of(number).values())
            source.run(f"INSERT INTO `{table}` VALUES ({number}, {values})")
        source.run(f"INSERT INTO `{table}` (id) VALUES (99)")
        source.capture()
    [schema, *rows] = source.raw("before")
    described = json.loads(schema["after"])
    assert {each["name"]: each["type"] for each in described} == {
        "id": "int",
        **{n: k for n, (_, k, _) in TYPES.items()},
    }
    assert [each["name"] for each in described if each["key"]] == ["id"]
    assert [each["op"] for each in rows] == ["read"] * (count + 1)
    [schema_of_log] = [each["after"] for each in source.raw("after") if each["op"] == "schema"]
    assert json.loads(schema_of_log) == described
    logged = [each for each in source.raw("after") if each["op"] == "insert"]
    assert [each["after"] for each in source.raw("after") if each["op"] == "read"] == [each["after"] for each in rows]
    for number, (read, insert) in enumerate(zip(rows, logged, strict=True)):
        assert insert["after"] == read["after"]
        if number == count:
            assert set(json.loads(read["after"]).values()) == {99, None}
            continue
        for name, (_, wanted) in values_of(number).items():
            if isinstance(wanted, str) and wanted.startswith("raw:"):
                assert f'"{name}":{wanted.removeprefix("raw:")}' in read["after"], name
            else:
                assert json.loads(read["after"])[name] == wanted, name


@pytest.mark.parametrize(("kind", "value"), [("UUID", "UUID()"), ("INET6", "CONCAT('2001:db8::', HEX(id))")])
def test_a_snapshot_by_a_key_of_another_type(source: Source, kind: str, value: str) -> None:
    source.run(f"CREATE TABLE t (id INT, k {kind} PRIMARY KEY)")
    source.run(f"INSERT INTO t SELECT seq AS id, {value.replace('id', 'seq')} FROM seq_1_to_100")
    source.capture(chunk_rows=7)
    assert source.ops("t") == ["read"] * 100
    source.run("UPDATE t SET id = 0 WHERE id > 50")
    source.capture()
    wanted = [json.dumps({"id": int(id), "k": k}, separators=(",", ":")) for id, k in source.run("SELECT id, k FROM t")]
    assert source.replayed("t", "k") == sorted(wanted)


def test_a_type_that_is_not_captured() -> None:
    with pytest.raises(CaptureError, match="the column v has the type vector, which isn't captured"):
        column_of("v", "vector", "vector(3)", None, None, None)
