"""Runs `metastore migrate` within the test's process, and looks at what differs."""

import json
from typing import Any

from click.testing import CliRunner

from metastore.cli.migrate import migrate
from tests.support.server import MetastoreServer


def run(what: str, *arguments: str, code: int | None = 0) -> Any:
    """What a command says at last, with --json."""
    result = CliRunner().invoke(migrate, [what, *arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert code is None or result.exit_code == code, result.output[-3000:]
    return json.loads(result.stdout.splitlines()[-1] if what == "follow" else result.stdout)


def complaint(what: str, *arguments: str) -> str:
    """What a command says that fails."""
    result = CliRunner().invoke(migrate, [what, *arguments])
    assert result.exit_code in (1, 2), result.output
    return result.output


def follow(source: str, ours: MetastoreServer, *options: str, code: int | None = 0) -> dict[str, Any]:
    """Follows until all is here that the log has."""
    found: dict[str, Any] = run("follow", source, "--uri", ours.uri, "--until-current", *options, code=code)
    return found


def differences(source: str, ours: MetastoreServer, *options: str) -> list[tuple[str, str, str]]:
    """What differs but for roles."""
    return [
        (each["kind"], each["name"], each["text"])
        for each in run("verify", source, "--uri", ours.uri, *options, code=None)["differences"]
        if each["kind"] not in ("roles", "members")
    ]
