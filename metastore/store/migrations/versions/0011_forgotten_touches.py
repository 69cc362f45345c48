"""What archived instants changed is forgotten once nobody under way has read so little."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "timelines",
        sa.Column(
            "forgotten",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="position up to which nobody finds conflicts any more",
        ),
    )
