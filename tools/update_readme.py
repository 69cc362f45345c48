"""Writes what is generated within README.md (speed) and docs/settings.md: `python -m tools.update_readme`."""

import json
import re
from pathlib import Path
from typing import Any

from bench.comparison import RAW
from bench.figures import readable
from metastore.settings import markdown_table

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SETTINGS = ROOT / "docs" / "settings.md"
RESULTS = ROOT / "bench" / "results" / "hive.json"


def with_settings(page: str) -> str:
    """`page` with the settings as they are now between its two marks."""
    return _between("settings", page, markdown_table())


def with_speed(readme: str, results: Path = RESULTS) -> str:
    """`readme` with chart and main ratios of the kept benchmark against Hive's server between its two marks."""
    if not results.exists():
        return _between("speed", readme, "")
    return _between("speed", readme, _speed(json.loads(results.read_text())))


def _between(mark: str, readme: str, content: str) -> str:
    section = re.compile(rf"(?<=<!-- {mark} -->\n).*(?=<!-- /{mark} -->)", re.DOTALL)
    return section.sub(lambda _: f"\n{content}\n\n" if content else "", readme)


def _speed(found: dict[str, Any]) -> str:
    """The chart, and the operations for which there is an aim."""
    machine, versions = found["machine"], found["versions"]
    lines = [
        "![How many times faster than Hive's server each call is](bench/results/hive.svg)",
        "",
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB, Hive {versions['Hive']},"
        f" Postgres {versions['Postgres']}, {found['day']}; [all figures](bench/results/hive.md):",
        "",
        "| | Hive | here | times faster | aim |",
        "|---|---:|---:|---:|---:|",
    ]
    for section in found["sections"]:
        for row in section["compared"]:
            if row["client"] == RAW and row["target"] is not None:
                medians = (f"{readable(row[side]['median'])} {row[side]['unit']}" for side in ("theirs", "ours"))
                ratios = f"{readable(row['ratio'])} | {row['target']:g}"
                lines.append(f"| {row['operation']} | {' | '.join(medians)} | {ratios} |")
    return "\n".join(lines)


if __name__ == "__main__":
    README.write_text(with_speed(README.read_text()))
    SETTINGS.write_text(with_settings(SETTINGS.read_text()))
