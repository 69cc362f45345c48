"""The public names of this version, one a line, as docs/stability.md lists what is public."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import eventbus
import lake.layers
import lake.spark
import lake.subscriptions
from lake.cli import main
from lake.protocol.events.types import EventType
from lake.protocol.services import METHODS, OWN_METHODS
from lake.protocol.struct import Struct
from metastore.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
IMPORT = re.compile(r"^ *from (lake\.[\w.]+) import ([\w, ]+)$", re.MULTILINE)
NAMED = re.compile(r"`(lake(?:\.[a-z]\w*){2,}\.\w+)`")
METRIC = re.compile(r"`(metastore_[a-z_]+)`")


def public_names() -> set[str]:
    return {
        *_of_thrift(),
        *_of_commands("command metastore", main, click.Context(main)),
        *_of_python(),
        *(f"setting {name}" for name in Settings.model_fields),
        *(f"event {each.value}" for each in EventType),
        *(f"metric {name}" for name in METRIC.findall((ROOT / "docs/monitoring.md").read_text())),
    }


def _of_thrift() -> Iterator[str]:
    """Methods with arguments, results and exceptions, and the fields of all structs that they use."""
    structs: dict[str, type[Struct]] = {}
    for name, method in METHODS.items():
        if name.startswith(OWN_METHODS):
            yield from (f"thrift {name} takes {each}" for each in _fields(method.args, structs))
            yield from (f"thrift {name} gives {each}" for each in _fields(method.result, structs))
    done: set[str] = set()
    while left := structs.keys() - done:
        for name in left:
            done.add(name)
            yield from (f"thrift struct {name} has {each}" for each in _fields(structs[name], structs))


def _fields(cls: type[Struct], structs: dict[str, type[Struct]]) -> Iterator[str]:
    for entry in filter(None, cls.thrift_spec):
        need = "required" if entry[2] in cls.required else "optional"
        yield f"{entry[0]}: {need} {_type(entry[1], entry[3], structs)} {entry[2]}"


def _type(kind: int, argument: Any, structs: dict[str, type[Struct]]) -> str:
    """The number of a wire type; of structs their name, of lists and maps what is in them."""
    if isinstance(argument, list):
        structs[argument[0].__name__] = argument[0]
        return str(argument[0].__name__)
    if isinstance(argument, tuple):
        parts = zip(argument[::2], argument[1::2], strict=False)
        return f"{kind}<{', '.join(_type(of, about, structs) for of, about in parts)}>"
    return str(kind)


def _of_commands(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield path
    for parameter in command.params:
        names = parameter.opts if isinstance(parameter, click.Option) else [f"{parameter.name}".upper()]
        yield from (f"{path} {name}" for name in [*names, *parameter.secondary_opts])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _of_commands(f"{path} {name}", found, click.Context(found, parent=context))


def _of_python() -> Iterator[str]:
    for module in (lake.spark, lake.layers, lake.subscriptions, eventbus):
        yield from (f"python {module.__name__}.{name}" for name in module.__all__)
    yield from (f"python {name}" for name in NAMED.findall((ROOT / "docs/stability.md").read_text()))
    for page in (ROOT / "docs").glob("*.md"):
        for module_name, names in IMPORT.findall(page.read_text()):
            yield from (f"python {module_name}.{name.strip()}" for name in names.split(","))
