"""What the captured tables of a project are defined by at the moment."""

from collections.abc import Callable
from pathlib import Path

from lake.cli.commands.schema_changes import policy_of
from lake.layers.definitions.model import CapturedTable
from lake.layers.errors import BadDefinition
from lake.protocol.hive import NoSuchObjectException
from lake.tables.lake import LakeClient


def definitions_of(client: LakeClient, directory: Path) -> Callable[[CapturedTable], str]:
    """A function that gives the definitions of a captured table of the project in a directory. It raises UserError."""

    def defined(captured: CapturedTable) -> str:
        path = None if captured.policy is None else directory / captured.policy
        policy = policy_of(path)  # says what is missing to read it
        from lake.capture.definitions import definition
        from lake.capture.errors import CaptureError
        from lake.capture.schema_changes.decisions import with_decisions

        lake = client.table(captured.raw)
        try:
            known = with_decisions(policy, lake)
            return definition(
                lake, captured.table, captured.name, quarantines=captured.quarantines, policy=known, is_printed=False
            )
        except NoSuchObjectException:
            raise BadDefinition(captured.place, f"there is no raw table {captured.raw}") from None
        except CaptureError as error:
            raise BadDefinition(captured.place, str(error)) from None

    return defined
