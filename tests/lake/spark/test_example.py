"""The examples run and print what they should."""

import subprocess
import sys

import pytest

from tests.spark.session import ROOT
from tests.support.target import Target


def run(name: str, target: Target) -> list[str]:
    """The lines that an example prints, without spaces."""
    command = [sys.executable, f"examples/{name}.py", "--uri", f"thrift://{target.host}:{target.port}"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stderr[-3000:]
    return [line.replace(" ", "") for line in result.stdout.splitlines()]


@pytest.mark.long
def test_the_lake_table(target: Target) -> None:
    lines = run("lake_table", target)
    as_it_is, as_it_was = (lines.index(line) for line in lines if line.startswith("asit"))
    assert "|2026-01-02|36.0|" in lines[as_it_is:as_it_was]
    assert "|2026-01-02|18.0|" in lines[as_it_was:]
    assert sum("|added|" in line for line in lines) == sum("|removed|" in line for line in lines) == 3


@pytest.mark.long
def test_the_mirror_of_a_shop(target: Target) -> None:
    lines = run("shop_mirror", target)
    orders, changed, compacted, published = (
        next(index for index, line in enumerate(lines) if line.startswith(begin))
        for begin in ("theorders:", "whatthelastbatch", "compacted:", "published,")
    )
    rows = ["|10|1|20.00|sent|8|", "|12|2|7.25|new|10|"]
    assert [line for line in lines[orders:changed] if line.startswith("|1")] == rows
    assert [line for line in lines[compacted:published] if line.startswith("|1")] == rows
    assert [line for line in lines[published:] if line.startswith("|1")] == rows
    assert [line for line in lines[changed:compacted] if line.startswith("|1")] == [
        "|11|2|5.50|new|4|delete|3|",
        "|12|2|7.25|new|10|insert|3|",
    ]


@pytest.mark.long
def test_the_wide_table(target: Target) -> None:
    lines = run("wide_table", target)
    now, before = lines.index("therides:"), lines.index("afterthefirstthreearrivals:")
    assert "|1|ada|kim|blue|12.5|190|" in lines[now:before]
    assert "|2|bo|lou|red|NULL|195|" in lines[now:before]
    assert "|2|bo|kim|blue|NULL|NULL|" in lines[before:]
