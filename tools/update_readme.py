"""Writes what is generated within README.md (speed) and docs/settings.md: `python -m tools.update_readme`."""

import json
import re
from pathlib import Path
from typing import Any

from bench.comparison import PER_SECOND, RAW
from bench.figures import readable
from metastore.settings import markdown_table

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SETTINGS = ROOT / "docs" / "settings.md"
RESULTS = ROOT / "bench" / "results"

Row = dict[str, Any]


def with_settings(page: str) -> str:
    """`page` with the settings as they are now between its two marks."""
    return _between("settings", page, markdown_table())


def with_speed(readme: str, results: Path = RESULTS) -> str:
    """`readme` with charts and ratios of the kept benchmarks that have another system beside us, between its marks."""
    shown = {"hive4": _hive4, "hive": _hive, "lake": _lake}
    files = {name: results / f"{name}.json" for name in shown}
    kept = [shown[name](json.loads(file.read_text())) for name, file in files.items() if file.exists()]
    return _between("speed", readme, "\n\n".join(kept))


def _between(mark: str, readme: str, content: str) -> str:
    section = re.compile(rf"(?<=<!-- {mark} -->\n).*(?=<!-- /{mark} -->)", re.DOTALL)
    return section.sub(lambda _: f"\n{content}\n\n" if content else "", readme)


def _hive4(found: Row) -> str:
    """The chart, and all operations beside Hive 4."""
    rows = [
        _row(row, _operation(section, row), section["names"][0])
        for section in found["sections"]
        for row in section["compared"]
        if not row["operation"].endswith("each call")
    ]
    chart = "![How many times faster than Hive 4's server each call is](bench/results/hive4.svg)"
    return "\n".join([chart, "", _where(found, "Hive", "Postgres"), "", *_table("| | beside | Hive", "|---|---", rows)])


def _operation(section: Row, row: Row) -> str:
    is_rate = row["theirs"]["unit"] == PER_SECOND
    return (f"{section['title'].partition(',')[0]}, " if is_rate else "") + str(row["operation"])


def _hive(found: Row) -> str:
    """The chart, and the operations beside Hive 2.3 for which there is an aim."""
    rows = [
        _row(row, row["operation"])
        for section in found["sections"]
        for row in section["compared"]
        if row["client"] == RAW and row["target"] is not None
    ]
    chart = "![How many times faster than Hive's server each call is](bench/results/hive.svg)"
    return "\n".join([chart, "", _where(found, "Hive", "Postgres"), "", *_table("| | Hive", "|---", rows)])


def _lake(found: Row) -> str:
    """All that is done with keyed tables, beside Hudi's."""
    section = found["sections"][0]
    rows = [_row(row, row["operation"], row["client"]) for row in section["compared"]]
    size = section["about"].partition(", in seconds")[0]
    about = f"Keyed tables beside Hudi's, both in one session of Spark: {size}."
    where = _where(found, "Hudi", "Spark")
    return "\n".join([f"{about} {where}", "", *_table("| | table | Hudi", "|---|---", rows)])


def _table(heading: str, rule: str, rows: list[str]) -> list[str]:
    return [f"{heading} | here | times faster | aim |", f"{rule}|---:|---:|---:|---:|", *rows]


def _row(row: Row, *names: str) -> str:
    medians = (f"{readable(row[side]['median'])} {row[side]['unit']}" for side in ("theirs", "ours"))
    aim = "" if row["target"] is None else f"{row['target']:g}"
    return f"| {' | '.join((*names, *medians, readable(row['ratio']), aim))} |"


def _where(found: Row, *systems: str) -> str:
    machine, versions = found["machine"], found["versions"]
    named = ", ".join(f"{system} {versions[system]}" for system in (*systems, "Python"))
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB, {named}, {found['day']};"
        f" [all figures](bench/results/{found['benchmark']}.md):"
    )


if __name__ == "__main__":
    README.write_text(with_speed(README.read_text()))
    SETTINGS.write_text(with_settings(SETTINGS.read_text()))
