"""Servers of the version before and of the one after this one: copies of the packages with other text in places."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import eventbus
import lake
import metastore

#: An older server doesn't know the newest fields of a completion, nor the newest properties that one may change.
OLDER = {
    "lake/protocol/generated/lake_metastore_types.py": {
        ", (29, 'replacedWhere', 11, 'UTF8'), (30, 'readGroups', 15, (11, 'UTF8', False))": "",
    },
    "metastore/services/instant_rules/schema_evolution.py": {"(PRIMARY_KEY, BUCKET, BUCKET_KEY)": "()"},
}

#: A newer one takes further values of properties, and files of another kind.
NEWER = {
    "lake/protocol/formats/keyed_table.py": {
        'FAIL = "fail"': 'FAIL, NEWEST = "fail", "newest"',
        'MERGE_ON_READ = "merge-on-read"': 'MERGE_ON_READ, NEWEST = "merge-on-read", "newest"',
        'LOOKUP = "lookup"': 'LOOKUP, NEWEST = "lookup", "newest"',
        'FIRST_ROW = "first-row"': 'FIRST_ROW, NEWEST = "first-row", "newest"',
    },
    "metastore/store/snapshot/data_files.py": {"    LOG = 1\n": "    LOG = 1\n    NEWEST = 2\n"},
    "metastore/services/timeline/planner.py": {'"log": Kind.LOG}': '"log": Kind.LOG, "newest": Kind.NEWEST}'},
}


def variables(directory: Path, changes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Makes a version in a directory. Returns the variables by which Python runs it in place of this one."""
    for package in (lake, metastore, eventbus):
        source = Path(package.__path__[0])
        shutil.copytree(source, directory / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name, replaced in changes.items():
        text = (directory / name).read_text()
        for old, new in replaced.items():
            assert old in text, f"{name} has no {old}"
            text = text.replace(old, new)
        (directory / name).write_text(text)
    return {"PYTHONPATH": str(directory), "PYTHONSAFEPATH": "1"}
