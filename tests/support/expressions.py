"""Partition expressions as Hive's planner sends them: trees of its classes, serialised by its own Kryo.

`expressions.json` holds them by a readable text, so that tests need no Java. Written anew by
`python -m tests.support.expressions`.
"""

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.jvm import pyspark_class_path, running

FILE = Path(__file__).with_name("expressions.json")


def serialised(text: str) -> bytes:
    """The bytes of one of the expressions in `expressions.json`."""
    encoded: str = json.loads(FILE.read_text())[text]
    return base64.b64decode(encoded)


class Planner:
    """Builds Hive's expression trees in a JVM."""

    def __init__(self, jvm: Any) -> None:
        self._hive = jvm.org.apache.hadoop.hive
        self._java = jvm.java
        self._types = self._hive.serde2.typeinfo.TypeInfoFactory

    def column(self, name: str, kind: str) -> Any:
        return self._hive.ql.plan.ExprNodeColumnDesc(self._types.getPrimitiveTypeInfo(kind), name, "t", True)

    def constant(self, value: Any, kind: str = "string") -> Any:
        if kind == "date":
            value = self._java.sql.Date.valueOf(value)
        return self._hive.ql.plan.ExprNodeConstantDesc(self._types.getPrimitiveTypeInfo(kind), value)

    def call(self, function: str, *operands: Any) -> Any:
        children = self._java.util.ArrayList()
        for operand in operands:
            children.add(operand)
        udf = getattr(self._hive.ql.udf.generic, f"GenericUDF{function}")()
        return self._hive.ql.plan.ExprNodeGenericFuncDesc(self._types.booleanTypeInfo, udf, children)

    def serialise(self, expression: Any) -> bytes:
        return bytes(self._hive.ql.exec.SerializationUtilities.serializeExpressionToKryo(expression))


def all_expressions(plan: Planner) -> dict[str, Any]:
    ds, hr, n, d = (
        plan.column("ds", "string"),
        plan.column("hr", "string"),
        plan.column("n", "int"),
        plan.column("d", "date"),
    )

    def text(value: str) -> Any:
        return plan.constant(value)

    def number(value: int) -> Any:
        return plan.constant(value, "int")

    first = plan.call("OPEqual", ds, text("2020-01-01"))
    return {
        "ds = '2020-01-01'": first,
        "'2020-01-01' = ds": plan.call("OPEqual", text("2020-01-01"), ds),
        "ds <> '2020-01-01'": plan.call("OPNotEqual", ds, text("2020-01-01")),
        "ds > '2020-01-01'": plan.call("OPGreaterThan", ds, text("2020-01-01")),
        "ds <= '2020-01-01'": plan.call("OPEqualOrLessThan", ds, text("2020-01-01")),
        "ds = 'nosuch'": plan.call("OPEqual", ds, text("nosuch")),
        "ds = '2020-01-02' and hr = '10'": plan.call(
            "OPAnd", plan.call("OPEqual", ds, text("2020-01-02")), plan.call("OPEqual", hr, text("10"))
        ),
        "ds = '2020-01-01' or hr = '1'": plan.call("OPOr", first, plan.call("OPEqual", hr, text("1"))),
        "ds in ('2020-01-01', 'Z')": plan.call("In", ds, text("2020-01-01"), text("Z")),
        "ds between '2020-01-01' and '2020-01-02'": plan.call(
            "Between", plan.constant(False, "boolean"), ds, text("2020-01-01"), text("2020-01-02")
        ),
        "ds is null": plan.call("OPNull", ds),
        "ds is not null": plan.call("OPNotNull", ds),
        "n = 7": plan.call("OPEqual", n, number(7)),
        "n > 2": plan.call("OPGreaterThan", n, number(2)),
        "n in (1, 10)": plan.call("In", n, number(1), number(10)),
        "d = date '2020-01-01'": plan.call("OPEqual", d, plan.constant("2020-01-01", "date")),
        "d >= date '2020-01-02'": plan.call("OPEqualOrGreaterThan", d, plan.constant("2020-01-02", "date")),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, running([pyspark_class_path()], Path(directory)) as gateway:
        planner = Planner(gateway.jvm)
        trees = all_expressions(planner)
        encoded = {text: base64.b64encode(planner.serialise(tree)).decode() for text, tree in trees.items()}
    FILE.write_text(json.dumps(encoded, indent=1) + "\n")


if __name__ == "__main__":
    main()
