"""A page of an earlier snapshot is found without a look at the files before and after it."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
compatible_from = "0011"


def upgrade() -> None:
    op.create_index("data_files_pages_idx", "data_files", ["table_id", "partition_name", "file_group"], unique=False)
