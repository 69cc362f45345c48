"""`metastore completion`: commands and options completed by the shell."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    With it, the shell completes the commands and options of `metastore`.

    \b
    Examples:
      metastore completion bash > ~/.local/share/bash-completion/completions/metastore
      metastore completion zsh > ~/.zfunc/_metastore
      metastore completion fish > ~/.config/fish/completions/metastore.fish
    """
    from lake.cli import main

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"this version of click has no completion for {shell}")
    click.echo(made(main, {}, "metastore", "_METASTORE_COMPLETE").source())
