"""Reads a project: its `spark-pipeline.yml`, and the files that this names."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from lake.layers.definitions import python_files, sql_files
from lake.layers.definitions.model import CapturedTable, Definitions, Project
from lake.layers.errors import BadDefinition, Place

SPECS = ("spark-pipeline.yml", "spark-pipeline.yaml")
_FIELDS = frozenset({"name", "storage", "catalog", "database", "schema", "configuration", "libraries"})


def read_project(directory: Path) -> Project:
    """The project in a directory. Raises BadDefinition."""
    found = [directory / name for name in SPECS if (directory / name).is_file()]
    if len(found) != 1:
        which = " and ".join(SPECS) if found else f"no {SPECS[0]}"
        raise BadDefinition(directory, f"there is {which}; a project has one")
    shown = Path(found[0].name)
    spec = _spec(found[0], shown)
    configuration = _configuration(spec, shown)
    definitions = Definitions()
    for file in _files(directory, spec, shown):
        (python_files if file.suffix == ".py" else sql_files).read(file, file.relative_to(directory), definitions)
    if not definitions.views and not definitions.streaming_tables and not definitions.captured:
        raise BadDefinition(shown, "its libraries define no table")
    return Project(
        directory,
        str(spec["name"]),
        str(spec.get("database") or spec.get("schema") or "default").lower(),
        configuration,
        definitions,
    )


def with_captured(project: Project, defined: Callable[[CapturedTable], str]) -> Project:
    """A project with definitions in place of its captured tables, which `defined` says now. Raises what that raises,
    and BadDefinition."""
    given, found = project.definitions, Definitions()
    for each in given.captured:
        sql_files.read_text(defined(each), each.place, found)
    views = [replace(each, is_captured=True) for each in found.views]
    tables = [replace(each, is_captured=True) for each in found.streaming_tables]
    made = Definitions([*given.views, *views], [*given.streaming_tables, *tables], [*given.flows, *found.flows])
    return replace(project, definitions=made)


def _spec(path: Path, shown: Path) -> Mapping[str, Any]:
    try:
        spec = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        raise BadDefinition(Place(shown, line), f"it isn't YAML: {getattr(error, 'problem', None) or error}") from None
    except OSError as error:
        raise BadDefinition(shown, f"it can't be read: {error.strerror}") from None
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str) or not spec["name"].strip():
        raise BadDefinition(Place(shown, 1), "expected `name: …`, the project's name")
    if unknown := [each for each in spec if each not in _FIELDS]:
        raise BadDefinition(Place(shown, 1), f"there is no field {unknown[0]}: {', '.join(sorted(_FIELDS))}")
    if spec.get("catalog") not in (None, "spark_catalog"):
        raise BadDefinition(Place(shown, 1), "catalog: layers are tables of the metastore's own catalog")
    return spec


def _configuration(spec: Mapping[str, Any], shown: Path) -> dict[str, str]:
    given = spec.get("configuration") or {}
    if not isinstance(given, dict) or not all(isinstance(part, str) for pair in given.items() for part in pair):
        raise BadDefinition(Place(shown, 1), "configuration: expected Spark's settings, each a text")
    return given


def _files(directory: Path, spec: Mapping[str, Any], shown: Path) -> list[Path]:
    """The files of definitions, by name."""
    found: set[Path] = set()
    libraries = spec.get("libraries") or []
    if not isinstance(libraries, list):
        raise BadDefinition(Place(shown, 1), "libraries: expected a list of `- glob: {include: transformations/**}`")
    for each in libraries:
        pattern = each.get("glob", {}).get("include") if isinstance(each, dict) else None
        if not isinstance(pattern, str) or not pattern or Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise BadDefinition(
                Place(shown, 1), "libraries: expected `- glob: {include: transformations/**}`, within the project"
            )
        pattern = f"{pattern}/*" if pattern.endswith("/**") else pattern
        found.update(file for file in directory.glob(pattern) if file.is_file() and "__pycache__" not in file.parts)
    for file in sorted(found):
        if file.suffix not in (".py", ".sql"):
            raise BadDefinition(file.relative_to(directory), "definitions are in files that end with .sql or .py")
    return sorted(found)
