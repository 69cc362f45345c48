"""Command-line flags for settings, made from their declarations."""

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click
from pydantic import ByteSize
from pydantic.fields import FieldInfo

from metastore.settings import Settings, default_text, flag_name, has_flag, load

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_options(*names: str) -> Callable[[Command], Command]:
    """Give a command `--config` and flags for the named settings, or for all of them.

    The command gets them as keyword arguments, to be handed to `load_settings` unchanged.
    """

    def decorate(command: Command) -> Command:
        return click.option(
            "--config",
            envvar="METASTORE_CONFIG",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="TOML file with settings. [env: METASTORE_CONFIG]",
        )(settings_flags(*(names or tuple(Settings.model_fields)))(command))

    return decorate


def settings_flags(*names: str) -> Callable[[Command], Command]:
    """Give a command flags for the named settings, as keyword arguments."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            if has_flag(name):
                command = _option(name, Settings.model_fields[name])(command)
        return command

    return decorate


def load_settings(config: Path | None, **flags: object) -> tuple[Settings, dict[str, str]]:
    """The settings, and where those come from that aren't at their default. Raises SettingsError."""
    return load({name: value for name, value in flags.items() if value is not None}, config)


def _option(name: str, field: FieldInfo) -> Callable[[Command], Command]:
    kind = _type(field.annotation)
    text = (field.description or "").replace("`", "")
    flag = flag_name(name)
    default = default_text(name).replace("`", "")
    kwargs: dict[str, Any] = {"help": f"{text} [default: {default}]", "default": None}
    if get_origin(kind) is Literal:
        return click.option(flag, type=click.Choice(get_args(kind)), **kwargs)
    if kind is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", **kwargs)
    # Anything else is checked where every value is, whatever it comes from.
    return click.option(flag, metavar=_metavar(name, kind), type=str, **kwargs)


def _type(annotation: Any) -> Any:
    """The type a value has if it isn't None."""
    if get_origin(annotation) in (types.UnionType, Union):
        annotation = next(kind for kind in get_args(annotation) if kind is not type(None))
    while hasattr(annotation, "__metadata__"):
        annotation = get_args(annotation)[0]
    return annotation


def _metavar(name: str, kind: Any) -> str:
    if name.endswith("_dir"):
        return "DIR"
    if name.endswith("_url"):
        return "URL"
    return {int: "N", float: "SECONDS", ByteSize: "SIZE"}.get(kind, "TEXT")
