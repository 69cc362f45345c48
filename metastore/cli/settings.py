"""`metastore settings`."""

from pathlib import Path

import click

from lake.cli.output import json_option, print_json, print_table
from metastore.cli.options import load_settings, settings_options
from metastore.settings import displayed, markdown_table


@click.command()
@click.option("--markdown", is_flag=True, help="Print what each setting means, as a Markdown table.")
@json_option
@settings_options()
def settings(markdown: bool, as_json: bool, config: Path | None, **flags: object) -> None:
    """Show the settings of `metastore serve` with these flags.

    Shows where each value comes from: a flag, the environment, the settings file, or the default.

    \b
    Example:
      metastore settings --config metastore.toml
    """
    if markdown:
        click.echo(markdown_table())
        return
    loaded, origins = load_settings(config, **flags)
    rows = [
        (name, displayed(name, getattr(loaded, name)), origins.get(name, "default"))
        for name in type(loaded).model_fields
    ]
    if as_json:
        print_json({name: {"value": value, "from": origin} for name, value, origin in rows})
    else:
        print_table(("setting", "value", "from"), rows)
