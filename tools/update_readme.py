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
RESULTS = ROOT / "bench" / "results" / "hive.json"
NEWEST = ROOT / "bench" / "results" / "hive4.json"


def with_settings(page: str) -> str:
    """`page` with the settings as they are now between its two marks."""
    return _between("settings", page, markdown_table())


def with_speed(readme: str, results: Path = RESULTS, newest: Path = NEWEST) -> str:
    """`readme` with charts and main ratios of the kept benchmarks against Hive's servers between its two marks."""
    kept = [
        show(json.loads(file.read_text())) for file, show in ((newest, _newest), (results, _speed)) if file.exists()
    ]
    return _between("speed", readme, "\n\n".join(kept))


def _between(mark: str, readme: str, content: str) -> str:
    section = re.compile(rf"(?<=<!-- {mark} -->\n).*(?=<!-- /{mark} -->)", re.DOTALL)
    return section.sub(lambda _: f"\n{content}\n\n" if content else "", readme)


def _newest(found: dict[str, Any]) -> str:
    """The chart, and all operations beside Hive 4."""
    lines = [
        "![How many times faster than Hive 4's server each call is](bench/results/hive4.svg)",
        "",
        f"{_where(found)}; [all figures](bench/results/hive4.md):",
        "",
        "| | beside | Hive | here | times faster | aim |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for section in found["sections"]:
        for row in section["compared"]:
            if not row["operation"].endswith("each call"):
                medians = (f"{readable(row[side]['median'])} {row[side]['unit']}" for side in ("theirs", "ours"))
                aim = "" if row["target"] is None else f"{row['target']:g}"
                what = f"{section['title'].partition(',')[0]}, " if row["theirs"]["unit"] == PER_SECOND else ""
                cells = (what + row["operation"], section["names"][0], *medians, readable(row["ratio"]), aim)
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _where(found: dict[str, Any]) -> str:
    machine, versions = found["machine"], found["versions"]
    return (
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB, Hive {versions['Hive']},"
        f" Postgres {versions['Postgres']}, {found['day']}"
    )


def _speed(found: dict[str, Any]) -> str:
    """The chart, and the operations for which there is an aim."""
    lines = [
        "![How many times faster than Hive's server each call is](bench/results/hive.svg)",
        "",
        f"{_where(found)}; [all figures](bench/results/hive.md):",
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
