"""Calls the `metastore` command in the process of the test, where `command` starts one: that takes a second of Python.

For commands that talk to a server and end. What is about processes, such as signals, or how commands begin, is for
`command`. Not for several threads: what is printed is caught for the whole process.
"""

import os
import subprocess

from click.testing import CliRunner

from lake.cli import main
from tests.support import command


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Calls the command; `environment` are the only METASTORE_ variables that it sees. Raises what that raises."""
    without = {name: None for name in os.environ if name.startswith("METASTORE_")}
    done = CliRunner().invoke(main, arguments, env=without | environment, prog_name="metastore")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def output(*arguments: str, **environment: str) -> str:
    """As of `command`."""
    return command.printed(run(*arguments, **environment))


def complaint(*arguments: str, code: int = 1, **environment: str) -> str:
    """As of `command`."""
    return command.refused(run(*arguments, **environment), code)
