"""Projects that tests write."""

from collections.abc import Mapping
from pathlib import Path

from lake.layers.compiler.graph import Graph, graph_of
from lake.layers.definitions.projects import read_project

SPEC = """
name: {name}
storage: file:///unused
database: {database}
libraries:
  - glob:
      include: transformations/**
"""


def write_project(
    directory: Path,
    files: dict[str, str],
    *,
    name: str = "shop",
    database: str = "shop",
    settings: Mapping[str, str] | None = None,
) -> Path:
    """Writes a project of some files of definitions, and Spark's settings. Returns its directory."""
    (directory / "transformations").mkdir(parents=True, exist_ok=True)
    spec = SPEC.format(name=name, database=database)
    if settings is not None:
        spec += "configuration:\n" + "".join(f"  {key}: '{value}'\n" for key, value in settings.items())
    (directory / "spark-pipeline.yml").write_text(spec)
    for file, text in files.items():
        (directory / "transformations" / file).write_text(text)
    return directory


def graph(directory: Path, **files: str) -> Graph:
    """The graph of a project; names of files have two underscores for their dot."""
    return graph_of(read_project(write_project(directory, {k.replace("__", "."): v for k, v in files.items()})))
