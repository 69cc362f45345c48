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
    return printed(run(*arguments, **environment))


def complaint(*arguments: str, code: int = 1, **environment: str) -> str:
    """The one line on stderr of a command that fails: with exit code 1, or 2 if it was called wrongly."""
    return refused(run(*arguments, **environment), code)


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """As of `output`, of a command that has run."""
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(done: subprocess.CompletedProcess[str], code: int) -> str:
    """As of `complaint`, of a command that has run."""
    assert (done.returncode, done.stdout) == (code, ""), done
    [line] = done.stderr.splitlines()
    return line
