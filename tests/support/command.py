"""Runs the `metastore` command as users do: a process, its output, its exit code."""

import os
import subprocess
import sys


def run(*arguments: str, module: str = "metastore", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command; `environment` are the only METASTORE_ variables that it gets."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")}
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=clean | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def output(*arguments: str, **environment: str) -> str:
    """What a command that succeeds prints on stdout."""
    result = run(*arguments, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def complaint(*arguments: str, code: int = 1, **environment: str) -> str:
    """The one line on stderr of a command that fails: with exit code 1, or 2 if it was called wrongly."""
    result = run(*arguments, **environment)
    assert (result.returncode, result.stdout) == (code, ""), result
    [line] = result.stderr.splitlines()
    return line
