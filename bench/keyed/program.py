"""Measures in the interpreter of Spark 3.5, on a server that runs. Prints JSON, a line for each thing it knows."""

import argparse
import json
import os
from pathlib import Path
from typing import TextIO

import pyspark

from bench.keyed.rows import Shape
from bench.keyed.session import SETTINGS, start
from bench.keyed.sides import COPY_ON_WRITE, DATABASE, MERGE_ON_READ
from bench.keyed.steps import Extent, Tables

WARM = (Shape(rows=8_000, days=4), Extent(rounds=2, commits=11, seconds=30))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--hudi", required=True, help="the jar of its bundle")
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--rows", required=True, type=int)
    parser.add_argument("--days", required=True, type=int)
    parser.add_argument("--rounds", required=True, type=int)
    parser.add_argument("--commits", required=True, type=int)
    parser.add_argument("--seconds", required=True, type=float)
    parser.add_argument("--cold", action="store_true", help="without a warm-up")
    options = parser.parse_args()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else prints, the JVM too, is no answer
    spark = start(options.uri, options.hudi, options.home / "scratch")
    spark.sql(f"CREATE DATABASE {DATABASE}")
    _tell(out, {"spark": pyspark.__version__, "settings": SETTINGS})
    shape = Shape(options.rows, options.days)
    extent = Extent(options.rounds, options.commits, options.seconds)
    for kind in (COPY_ON_WRITE, MERGE_ON_READ):
        if not options.cold:
            _tell(out, {"doing": f"warming up with a small table, {kind}"})
            for _ in Tables(spark, options.home, kind, *WARM).measured():
                pass
        _tell(out, {"doing": f"loading {shape.rows:,} rows, {kind}"})
        tables = Tables(spark, options.home, kind, shape, extent)
        for found in tables.measured():
            _tell(out, {"kind": kind, **found})
        _tell(out, {"doing": f"small commits in tables of a tenth of the days and of all, {kind}"})
        _tell(out, {"kind": kind, "growth": tables.growth()})
    spark.stop()


def _tell(out: TextIO, found: object) -> None:
    out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
