"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "catalogs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("catalogs_pkey")),
        sa.UniqueConstraint("name", name=op.f("catalogs_name_key")),
    )
    op.create_table(
        "column_statistics",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("partition_id", sa.BigInteger(), server_default="0", nullable=False, comment="0: the table's own"),
        sa.Column("column_name", sa.Text(collation="C"), nullable=False),
        sa.Column("engine", sa.Text(collation="C"), server_default="hive", nullable=False),
        sa.Column("last_analyzed", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded ColumnStatisticsObj"),
        sa.PrimaryKeyConstraint("id", name=op.f("column_statistics_pkey")),
        sa.UniqueConstraint(
            "table_id",
            "partition_id",
            "column_name",
            "engine",
            name=op.f("column_statistics_table_id_partition_id_column_name_engine_key"),
        ),
    )
    op.create_table(
        "locks",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False, comment="0: of no transaction"),
        sa.Column("user_name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column(
            "heartbeat_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("acquired_at", sa.DateTime(timezone=True), nullable=True, comment="NULL: it waits"),
        sa.PrimaryKeyConstraint("id", name=op.f("locks_pkey")),
        comment="a lock stands behind every lock with a smaller id",
    )
    op.create_table(
        "metastore_properties",
        sa.Column("key", sa.Text(collation="C"), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("metastore_properties_pkey")),
    )
    op.create_table(
        "moves",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True, comment="NULL: the data is to be deleted"),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("moves_pkey")),
        comment="data to be moved or deleted: recorded with the change that asks for it, removed once it is done",
    )
    op.create_table(
        "partition_events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False),
        sa.Column("event_type", sa.SmallInteger(), nullable=False),
        sa.Column("event_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("partition_events_pkey")),
        comment="markPartitionForEvent",
    )
    op.create_index(
        op.f("partition_events_table_id_partition_name_idx"),
        "partition_events",
        ["table_id", "partition_name"],
        unique=False,
    )
    op.create_table(
        "partitions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "name", sa.Text(collation="C"), nullable=False, comment="dt=2024-01-01/hr=00, values escaped as in a path"
        ),
        sa.Column("values", postgresql.ARRAY(sa.Text(collation="C")), nullable=False),
        sa.Column("ready", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("path", sa.Text(), nullable=True, comment="location below the table's; NULL where location says it"),
        sa.Column("location", sa.Text(), nullable=True, comment="location elsewhere than below the table's"),
        sa.Column("storage_descriptor_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="encoded Partition without names, descriptor and STOP"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("partitions_pkey")),
        sa.UniqueConstraint("table_id", "name", name=op.f("partitions_table_id_name_key")),
    )
    op.create_index(
        "partitions_first_value_idx", "partitions", ["table_id", sa.literal_column('("values"[1])')], unique=False
    )
    op.create_index(op.f("partitions_storage_descriptor_id_idx"), "partitions", ["storage_descriptor_id"], unique=False)
    op.create_index(
        "partitions_uncommitted_idx", "partitions", ["table_id"], unique=False, postgresql_where=sa.text("NOT ready")
    )
    op.create_table(
        "roles",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("create_time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("roles_pkey")),
        sa.UniqueConstraint("name", name=op.f("roles_name_key")),
    )
    op.create_table(
        "storage_descriptors",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False, comment="SHA-256 of body"),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="encoded StorageDescriptor without location and STOP"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("storage_descriptors_pkey")),
        sa.UniqueConstraint("digest", name=op.f("storage_descriptors_digest_key")),
        comment="each distinct descriptor once: the partitions of a table mostly differ in their location alone",
    )
    op.create_table(
        "databases",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("catalog_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("location", sa.Text(collation="C"), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="encoded Database without name, catalog, location, owner"
        ),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.ForeignKeyConstraint(["catalog_id"], ["catalogs.id"], name=op.f("databases_catalog_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("databases_pkey")),
        sa.UniqueConstraint("catalog_id", "name", name=op.f("databases_catalog_id_name_key")),
    )
    op.create_index(op.f("databases_location_idx"), "databases", ["location"], unique=False)
    op.create_table(
        "lock_components",
        sa.Column("lock_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False, comment="within the lock, from 1"),
        sa.Column("catalog", sa.Text(collation="C"), nullable=False),
        sa.Column("database_name", sa.Text(collation="C"), nullable=False),
        sa.Column("table_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole database"),
        sa.Column("partition_name", sa.Text(collation="C"), nullable=False, comment="empty: the whole table"),
        sa.Column("type", sa.SmallInteger(), nullable=False, comment="LockType"),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False, comment="the lock's"),
        sa.Column("blocked_by_lock", sa.BigInteger(), nullable=True, comment="what it was last found waiting for"),
        sa.Column("blocked_by_number", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["lock_id"], ["locks.id"], name=op.f("lock_components_lock_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("lock_id", "number", name=op.f("lock_components_pkey")),
    )
    op.create_index(
        "lock_components_object_idx",
        "lock_components",
        ["catalog", "database_name", "table_name", "partition_name"],
        unique=False,
    )
    op.create_table(
        "role_grants",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("role_id", sa.BigInteger(), nullable=False),
        sa.Column("principal_type", sa.SmallInteger(), nullable=False, comment="PrincipalType"),
        sa.Column("principal_name", sa.Text(collation="C"), nullable=False),
        sa.Column("grant_time", sa.BigInteger(), nullable=False),
        sa.Column("grantor", sa.Text(), nullable=True),
        sa.Column("grantor_type", sa.SmallInteger(), nullable=True),
        sa.Column("grant_option", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["role_id"], ["roles.id"], name=op.f("role_grants_role_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("role_grants_pkey")),
        sa.UniqueConstraint(
            "principal_name",
            "principal_type",
            "role_id",
            name=op.f("role_grants_principal_name_principal_type_role_id_key"),
        ),
        comment="who is a member of a role",
    )
    op.create_index(op.f("role_grants_role_id_idx"), "role_grants", ["role_id"], unique=False)
    op.create_table(
        "functions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("database_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="encoded Function without names"),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f("functions_database_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("functions_pkey")),
        sa.UniqueConstraint("database_id", "name", name=op.f("functions_database_id_name_key")),
    )
    op.create_table(
        "tables",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("database_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("type", sa.Text(collation="C"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("last_access_time", sa.Integer(), nullable=False),
        sa.Column("location", sa.Text(collation="C"), nullable=True, comment="NULL: none, as for a view"),
        sa.Column("storage_descriptor_id", sa.BigInteger(), nullable=False),
        sa.Column("parameters", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="encoded Table without what the other columns hold"
        ),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.ForeignKeyConstraint(["database_id"], ["databases.id"], name=op.f("tables_database_id_fkey")),
        sa.ForeignKeyConstraint(
            ["storage_descriptor_id"], ["storage_descriptors.id"], name=op.f("tables_storage_descriptor_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("tables_pkey")),
        sa.UniqueConstraint("database_id", "name", name=op.f("tables_database_id_name_key")),
    )
    op.create_index(op.f("tables_location_idx"), "tables", ["location"], unique=False)
    op.create_index(op.f("tables_storage_descriptor_id_idx"), "tables", ["storage_descriptor_id"], unique=False)
    op.create_table(
        "constraints",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("table_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False, comment="metastore.store.table.constraints.Kind"),
        sa.Column("name", sa.Text(collation="C"), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False, comment="of the column within the constraint, from 1"),
        sa.Column("column_name", sa.Text(collation="C"), nullable=True, comment="NULL: a check of the whole row"),
        sa.Column("parent_table_id", sa.BigInteger(), nullable=True, comment="what a foreign key refers to"),
        sa.Column("parent_column_name", sa.Text(collation="C"), nullable=True),
        sa.Column(
            "body", sa.LargeBinary(), nullable=False, comment="encoded SQLPrimaryKey, SQLForeignKey, ... without names"
        ),
        sa.ForeignKeyConstraint(
            ["parent_table_id"], ["tables.id"], name=op.f("constraints_parent_table_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["table_id"], ["tables.id"], name=op.f("constraints_table_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("constraints_pkey")),
        sa.UniqueConstraint("table_id", "name", "position", name=op.f("constraints_table_id_name_position_key")),
        comment="one row per constraint and column",
    )
    op.create_index(op.f("constraints_parent_table_id_idx"), "constraints", ["parent_table_id"], unique=False)
    op.create_table(
        "privileges",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column(
            "object_type", sa.SmallInteger(), nullable=False, comment="HiveObjectType; the next four say which object"
        ),
        sa.Column("database_id", sa.BigInteger(), nullable=True),
        sa.Column("table_id", sa.BigInteger(), nullable=True),
        sa.Column(
            "partition_id",
            sa.BigInteger(),
            nullable=True,
            comment="may be of a partition that is gone; ids are never used again",
        ),
        sa.Column("column_name", sa.Text(collation="C"), nullable=True),
        sa.Column("principal_type", sa.SmallInteger(), nullable=False, comment="PrincipalType"),
        sa.Column("principal_name", sa.Text(collation="C"), nullable=False),
        sa.Column("privilege", sa.Text(collation="C"), nullable=False),
        sa.Column("grant_time", sa.BigInteger(), nullable=False),
        sa.Column("grantor", sa.Text(), nullable=True),
        sa.Column("grantor_type", sa.SmallInteger(), nullable=True),
        sa.Column("grant_option", sa.Boolean(), nullable=False),
        sa.Column("authorizer", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["database_id"], ["databases.id"], name=op.f("privileges_database_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["table_id"], ["tables.id"], name=op.f("privileges_table_id_fkey"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("privileges_pkey")),
    )
    op.create_index(op.f("privileges_database_id_idx"), "privileges", ["database_id"], unique=False)
    op.create_index(op.f("privileges_principal_name_idx"), "privileges", ["principal_name"], unique=False)
    op.create_index(op.f("privileges_table_id_idx"), "privileges", ["table_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("privileges_table_id_idx"), table_name="privileges")
    op.drop_index(op.f("privileges_principal_name_idx"), table_name="privileges")
    op.drop_index(op.f("privileges_database_id_idx"), table_name="privileges")
    op.drop_table("privileges")
    op.drop_index(op.f("constraints_parent_table_id_idx"), table_name="constraints")
    op.drop_table("constraints")
    op.drop_index(op.f("tables_storage_descriptor_id_idx"), table_name="tables")
    op.drop_index(op.f("tables_location_idx"), table_name="tables")
    op.drop_table("tables")
    op.drop_table("functions")
    op.drop_index(op.f("role_grants_role_id_idx"), table_name="role_grants")
    op.drop_table("role_grants")
    op.drop_index("lock_components_object_idx", table_name="lock_components")
    op.drop_table("lock_components")
    op.drop_index(op.f("databases_location_idx"), table_name="databases")
    op.drop_table("databases")
    op.drop_table("storage_descriptors")
    op.drop_table("roles")
    op.drop_index("partitions_uncommitted_idx", table_name="partitions", postgresql_where=sa.text("NOT ready"))
    op.drop_index(op.f("partitions_storage_descriptor_id_idx"), table_name="partitions")
    op.drop_index("partitions_first_value_idx", table_name="partitions")
    op.drop_table("partitions")
    op.drop_index(op.f("partition_events_table_id_partition_name_idx"), table_name="partition_events")
    op.drop_table("partition_events")
    op.drop_table("moves")
    op.drop_table("metastore_properties")
    op.drop_table("locks")
    op.drop_table("column_statistics")
    op.drop_table("catalogs")
