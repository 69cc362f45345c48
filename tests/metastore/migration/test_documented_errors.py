"""The errors that docs/migration.md explains are those that the code raises."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = (
    "lake/protocol/errors.py",
    "metastore/api/rights",
    "metastore/cli/migrate.py",
    "metastore/cli/migrate_switch.py",
    "metastore/federation/routing.py",
    "metastore/migration",
    "metastore/services/migration",
    "metastore/services/table/service.py",
)


def texts() -> Iterator[str]:
    """The texts in the code, between the values in them."""
    for source in map(Path, SOURCES):
        for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            tree = ast.parse(file.read_text())
            comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments:
                    yield node.value


LISTENER = Path("spark_extension/src/lake/metastore/hive/MovedDatabases.java")


def test_each_is_raised() -> None:
    document = Path("docs/migration.md").read_text()
    rows = re.findall(r"^\| (.+?) \| .+ \|$", document.partition("\n## Errors\n")[2], re.MULTILINE)
    assert len(rows) > 40
    known = [*texts(), *re.findall(r'"([^"]*)"', LISTENER.read_text())]
    parts = [part for row in rows[1:] for part in re.split(r" ?… ?", row) if part]
    assert [part for part in parts if not any(part in text for text in known)] == []
