"""Writes docs/methods.md: `python -m tools.update_methods [RECORD]`.

The page lists every method of the interfaces, whether it is answered, and how that was checked. What a method does
otherwise than Hive's is said in its declaration, by `off=` or `differs=` of `metastore.api.methods.answers`. The
checks come from a record that tests write (`pytest --record-methods build/methods.json`, see
tests/support/method_record.py); without one they stay as the page tells them, and a method that it doesn't know yet
counts as not called.
"""

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path

from lake.protocol.generated import (
    fb303_service,
    hive_metastore_service,
    hudi_metaserver_service,
    lake_metastore_service,
)
from metastore.api import load
from metastore.api.methods import HANDLERS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "methods.md"
RECORD = ROOT / "build" / "methods.json"

SERVICES = {
    "Hive's metastore": hive_metastore_service,
    "fb303, which every service of Hive's kind has": fb303_service,
    "Hudi's metaserver": hudi_metaserver_service,
    "Our own": lake_metastore_service,
}
REFERENCES = {"hive": "Hive 2.3", "hive4": "Hive 4"}
SUITE = "hive4's suite"
ALONE, NOT_CALLED, BY_HIVE = "here alone", "not called", "in Hive 4's own suite"
ROW = re.compile(r"^\| `(\w+)` \| (.*) \| (.*) \|$", re.MULTILINE)

INTRODUCTION = """\
# Every method, and how it was checked

Written by `python -m tools.update_methods` from a run of the tests; don't edit it.

**Answered**: *works* means as Hive answers it (or as its own documentation says); *as if off* means as Hive answers
where the feature behind it is not in use; *differs* names the difference, of which
[compatibility.md](compatibility.md) tells more; *no* means as any Thrift server answers a method that it doesn't know.

**Checked**: by tests that call the method with our own Thrift client, and pass. *Compared* means that one test ran
against Hive's own server, too, and expected the same of both. *In Hive 4's own suite* means that Hive's tests of its
client call it here and pass, but for those that `tests/interop/hive4_exclusions.tsv` names. Programs that bring a
client of their own (Spark, Hive's own client, PyIceberg) call many methods in other tests, which don't count here.
"""


def checks(record: Mapping[str, Mapping[str, list[str]]]) -> dict[str, str]:
    """How each method was checked that some test called."""
    alone: set[str] = set()
    others: set[str] = set()
    compared: dict[str, set[str]] = {}
    for servers in record.values():
        ours = set(servers.get("ours", ()))
        alone |= ours
        others |= set(servers.get(SUITE, ()))
        for reference in REFERENCES:
            for name in ours.intersection(servers.get(reference, ())):
                compared.setdefault(name, set()).add(reference)
    checked = dict.fromkeys(alone, ALONE)
    for name, references in compared.items():
        checked[name] = f"compared with {' and '.join(REFERENCES[each] for each in REFERENCES if each in references)}"
    for name in others:
        checked[name] = f"{checked[name]}; {BY_HIVE}" if name in checked else BY_HIVE
    return checked


def checked_by(page: str) -> dict[str, str]:
    """How each method was checked, as the page says."""
    return {name: checked for name, _, checked in ROW.findall(page)}


def answered(name: str) -> str:
    handler = HANDLERS.get(name)
    if handler is None:
        return "no"
    if handler.off is not None:
        return f"as if off: {handler.off}"
    return "works" if handler.differs is None else f"differs: {handler.differs}"


def rendered(checked: Mapping[str, str]) -> str:
    """The page."""
    load()
    rows = {
        title: [(m.name, answered(m.name), checked.get(m.name, NOT_CALLED)) for m in service.METHODS]
        for title, service in SERVICES.items()
    }
    every = [row for part in rows.values() for row in part]
    counts = (
        f"Of {len(every)} methods {sum(answer != 'no' for _, answer, _ in every)} are answered;"
        f" {sum(how.startswith('compared') for *_, how in every)} were compared with Hive's own server,"
        f" {sum(how.startswith(ALONE) for *_, how in every)} ran here alone."
    )
    parts = [INTRODUCTION, counts]
    for title, part in rows.items():
        parts += [f"\n## {title}\n", "| method | answered | checked |", "|---|---|---|"]
        parts += [f"| `{name}` | {answer} | {how} |" for name, answer, how in sorted(part)]
    return "\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", nargs="?", type=Path, help="what tests recorded (default: the page's own checks)")
    record = parser.parse_args().record
    PAGE.write_text(
        rendered(checked_by(PAGE.read_text()) if record is None else checks(json.loads(record.read_text())))
    )


if __name__ == "__main__":
    main()
