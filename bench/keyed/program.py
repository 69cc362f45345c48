"""One side, in the interpreter of Spark 3.5: does what lines of JSON say, and answers each with one."""

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import pyspark

from bench.keyed.rows import Shape
from bench.keyed.session import start
from bench.keyed.sides import SIDES, Side


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", required=True, choices=SIDES)
    parser.add_argument("--uri", default="")
    parser.add_argument("--jar", default="", help="of the side's bundle")
    parser.add_argument("--home", required=True, type=Path)
    options = parser.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else prints, the JVM too, is no answer
    spark = start(options.side, options.uri, options.jar, options.home)
    out.write(json.dumps({"value": pyspark.__version__}) + "\n")
    tables: dict[str, Side] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            value = _answer(asked, tables, lambda *named: SIDES[options.side](spark, *named))
        except Exception as error:
            traceback.print_exc()  # to the log, with what the JVM says
            out.write(json.dumps({"error": f"{asked}: {str(error)[:2000]}"}) + "\n")
        else:
            out.write(json.dumps({"value": value}) + "\n")
    spark.stop()


def _answer(asked: dict[str, Any], tables: dict[str, Side], made: Any) -> Any:
    """`asked`: what is done (`call`, with `arguments`) with which table."""
    if asked["call"] == "create":
        kind, rows, days = asked["arguments"]
        tables[asked["table"]] = made(kind, Shape(rows, days))
        return None
    return getattr(tables[asked["table"]], asked["call"])(*asked["arguments"])


if __name__ == "__main__":
    main()
