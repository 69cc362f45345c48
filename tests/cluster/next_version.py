"""The release after this one, as a directory with a copy of the packages and one more revision of the schema."""

import shutil
from pathlib import Path

import eventbus
import metastore
from metastore.store import migrations

REVISION = '''"""What the next release adds."""

import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = "{before}"
{compatible_from}

def upgrade() -> None:
    op.add_column("tables", sa.Column("{column}", sa.Text(), nullable=False, server_default="none"))
    op.add_column("partitions", sa.Column("{column}", sa.Text(), nullable=True))
    op.create_table("{column}s", sa.Column("id", sa.BigInteger(), primary_key=True))
'''


class NextVersion:
    """It knows revision `revision`, which servers of this version can work with if `compatible`.

    `environment` makes Python run it in place of this one.
    """

    revision = "9001"

    def __init__(self, directory: Path, *, compatible: bool) -> None:
        for package in (metastore, eventbus):
            source = Path(package.__path__[0])
            shutil.copytree(source, directory / source.name, ignore=shutil.ignore_patterns("__pycache__"))
        text = REVISION.format(
            revision=self.revision,
            before=migrations.head(),
            compatible_from=f'compatible_from = "{migrations.head()}"\n' if compatible else "",
            column="next_thing",
        )
        (directory / "metastore/store/migrations/versions/9001_next.py").write_text(text)
        self.environment = {"PYTHONPATH": str(directory), "PYTHONSAFEPATH": "1"}
