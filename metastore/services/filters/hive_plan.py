"""The classes of which Hive's planner makes the condition on a table's partitions, and how they are written.

A condition is a tree of ExprNodeDesc: functions, columns, constants. Kryo, a Java library, serialises it. A function
contains the Java object that evaluates it. Only that object's class matters here, but a reader must know all of its
fields to skip them. The fields are those of Hive 2.3, 3.1 and 4.0, with few differences.
"""

from typing import Any

from metastore.services.filters import kryo
from metastore.services.filters.kryo import ANY, ENUM, LIST_OF_STRINGS, Fields

PLAN = "org.apache.hadoop.hive.ql.plan."
FUNCTION = PLAN + "ExprNodeGenericFuncDesc"
COLUMN = PLAN + "ExprNodeColumnDesc"
CONSTANT = PLAN + "ExprNodeConstantDesc"
GENERIC = "org.apache.hadoop.hive.ql.udf.generic."
BRIDGE = GENERIC + "GenericUDFBridge"
"""A function of the older kind, whose class is named in the field udfClassName."""
COMPARISONS = ("Equal", "EqualNS", "NotEqual", "LessThan", "EqualOrLessThan", "GreaterThan", "EqualOrGreaterThan")

_STRING = "java.lang.String"
_FIXED_LIST = "java.util.Arrays$ArrayList"
_TYPES = "org.apache.hadoop.hive.serde2.typeinfo."
_INSPECTORS = "org.apache.hadoop.hive.serde2.objectinspector.primitive."
_VALUES = "org.apache.hadoop.hive.common.type."
_IO = "org.apache.hadoop.io."
_HIVE_IO = "org.apache.hadoop.hive.serde2.io."
_COMPARE_TYPE = GENERIC + "GenericUDFBaseCompare$CompareType"

_RESULT: Fields = (("result", ANY),)
_COMPARISON: Fields = (
    ("compareOI", ANY),
    ("compareType", _COMPARE_TYPE),
    ("opDisplayName", _STRING),
    ("opName", _STRING),
    ("result", ANY),
)
# Functions without fields, as far as people use them on partition keys.
_PLAIN = (
    "Case", "Coalesce", "Concat", "Date", "Decode", "Elt", "Greatest", "If", "Least", "Lower", "Nvl", "Nullif",
    "Split", "Struct", "ToDate", "ToString", "ToUnixTimeStamp", "Upper", "When",
)  # fmt: skip
_INSPECTED = (
    "Boolean", "Byte", "Short", "Int", "Long", "Float", "Double", "String", "HiveVarchar", "HiveChar", "HiveDecimal",
    "Date", "Timestamp",
)  # fmt: skip

_CLASSES: dict[str, Fields | str] = {
    # "chidren" in Hive 2.3, which has the same place.
    FUNCTION: (("children", ANY), ("genericUDF", ANY), ("isSortedExpr", "boolean"), ("typeInfo", ANY)),
    COLUMN: (
        ("column", _STRING),
        ("isPartitionColOrVirtualCol", "boolean"),
        ("isSkewedCol", "boolean"),
        ("tabAlias", _STRING),
        ("typeInfo", ANY),
    ),
    CONSTANT: (("typeInfo", ANY), ("value", ANY)),
    _COMPARE_TYPE: ENUM,
    **{f"{GENERIC}GenericUDFOP{name}": _COMPARISON for name in COMPARISONS},
    **{f"{GENERIC}GenericUDFOP{name}": _RESULT for name in ("And", "Or", "Not", "Null", "NotNull")},
    **{f"{GENERIC}GenericUDF{name}": () for name in _PLAIN},
    **{f"{GENERIC}GenericUDFTo{name}": (("typeInfo", ANY),) for name in ("Varchar", "Char", "Decimal")},
    GENERIC + "GenericUDFTimestamp": (("intToTimestampInSeconds", "boolean"),),
    GENERIC + "GenericUDFIn": (("bw", ANY), ("isInSetConstant", "boolean")),
    GENERIC + "GenericUDFBetween": (("argumentOIs", ANY), ("egt", ANY), ("elt", ANY), ("result", ANY)),
    BRIDGE: (("isOperator", "boolean"), ("udfClassName", _STRING), ("udfName", _STRING)),
    _TYPES + "PrimitiveTypeInfo": (("typeName", _STRING),),
    _TYPES + "VarcharTypeInfo": (("length", "int"), ("typeName", _STRING)),
    _TYPES + "CharTypeInfo": (("length", "int"), ("typeName", _STRING)),
    _TYPES + "DecimalTypeInfo": (("precision", "int"), ("scale", "int"), ("typeName", _STRING)),
    _TYPES + "StructTypeInfo": (("allStructFieldNames", LIST_OF_STRINGS), ("allStructFieldTypeInfos", ANY)),
    **{f"{_INSPECTORS}Writable{name}ObjectInspector": (("typeInfo", ANY),) for name in _INSPECTED},
    **{
        f"{_INSPECTORS}WritableConstant{name}ObjectInspector": (("typeInfo", ANY), ("value", ANY))
        for name in _INSPECTED
        if name != "HiveDecimal"
    },
    _IO + "BooleanWritable": (("value", "boolean"),),
    _IO + "IntWritable": (("value", "int"),),
    _IO + "LongWritable": (("value", "long"),),
    _IO + "FloatWritable": (("value", "float"),),
    _HIVE_IO + "ByteWritable": (("value", "byte"),),
    _HIVE_IO + "ShortWritable": (("value", "short"),),
    _HIVE_IO + "DoubleWritable": (("value", "double"),),
    _HIVE_IO + "DateWritable": (("daysSinceEpoch", "int"),),
    _HIVE_IO + "DateWritableV2": (("date", ANY),),
    _VALUES + "HiveVarchar": (("value", _STRING),),
    _VALUES + "HiveChar": (("value", _STRING),),
    _VALUES + "HiveDecimal": (
        ("fast0", "long"),
        ("fast1", "long"),
        ("fast2", "long"),
        ("fastIntegerDigitCount", "int"),
        ("fastScale", "int"),
        ("fastSerializationScale", "int"),
        ("fastSignum", "int"),
    ),
    _VALUES + "Date": (("localDate", "java.time.LocalDate"),),
    _VALUES + "Timestamp": (("localDateTime", "java.time.LocalDateTime"),),
}
# Hive 2.3 and 3.1 write these through Kryo 3, which knows nothing of java.time.
_TIMES: dict[str, Fields] = {
    "java.time.LocalDate": (("day", "short"), ("month", "short"), ("year", "int")),
    "java.time.LocalTime": (("hour", "byte"), ("minute", "byte"), ("nano", "int"), ("second", "byte")),
    "java.time.LocalDateTime": (("date", "java.time.LocalDate"), ("time", "java.time.LocalTime")),
}
_CHARACTERS = (_HIVE_IO + "HiveVarcharWritable", _HIVE_IO + "HiveCharWritable")
# Of Hadoop 3.3 and later, and of earlier ones.
_TEXTS: tuple[Fields, ...] = (
    (("bytes", "[B"), ("length", "int"), ("textLength", "int")),
    (("bytes", "[B"), ("length", "int")),
)
_HIVE_3 = [
    kryo.Format(
        3,
        {**_CLASSES, **_TIMES, **dict.fromkeys(_CHARACTERS, (("value", ANY),)), _IO + "Text": text},
        # The list of Arrays.asList has one number in Hive 2.3, the other in 3.1.
        {10: "java.sql.Date", 11: "java.sql.Timestamp", 13: _FIXED_LIST, 14: _FIXED_LIST},
    )
    for text in _TEXTS
]
_HIVE_4 = kryo.Format(
    5,
    {
        **_CLASSES,
        **dict.fromkeys(_CHARACTERS, (("charLength", "int"), ("value", ANY))),
        _IO + "Text": _TEXTS[0],
    },
    {9: "java.sql.Date", 10: "java.sql.Timestamp", 13: _FIXED_LIST},
)
# From Hive 4, the root's class comes first: a new one, number 0. Before, a new object, and the class of its children:
# a new one or one of the registered lists.
_WITH_CLASS = b"\x01\x00"
_WITHOUT_CLASS = (b"\x01\x01\x00", b"\x01\x0f", b"\x01\x10", b"\x01\x11")


def is_expression(data: bytes) -> bool:
    """Whether the bytes begin as an expression of Hive's planner does. No text does."""
    return data.startswith((_WITH_CLASS, *_WITHOUT_CLASS))


def read_expression(data: bytes) -> Any:
    """The root of a condition: an Instance of FUNCTION, or another of Hive's expressions. Raises Unreadable."""
    if data.startswith(_WITH_CLASS):
        return kryo.read(data, _HIVE_4)
    try:
        return kryo.read(data, _HIVE_3[0], FUNCTION)
    except kryo.Unreadable as error:
        try:
            return kryo.read(data, _HIVE_3[1], FUNCTION)
        except kryo.Unreadable:
            raise error from None
