"""A Postgres whose changes are captured: its catalog, its slot, chunks of its tables. All SQL of capture is here,
but for the event trigger's."""

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extensions
from psycopg2 import sql
from psycopg2.extras import LogicalReplicationConnection, ReplicationCursor
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lake.capture.errors import CaptureError, SlotLost
from lake.capture.postgres.layouts import CatalogTable, catalog_table
from lake.capture.postgres.pgoutput import Column
from lake.capture.postgres.positions import SnapshotOfTransactions, parse_lsn
from lake.capture.postgres.preparation import SCHEMA, UNPREPARE, statements_to_prepare
from lake.capture.postgres.replication import Stream
from lake.capture.postgres.values import SESSION_SETTINGS
from lake.protocol.connection.closing import Closing

logger = logging.getLogger(__name__)

MESSAGE_PREFIX = "lake.capture"
"""Of the messages that a capture writes into the log, as marks of its own."""

MINIMUM_VERSION = 150_000
"""Postgres 15: publications say which columns and rows they publish."""

_CONNECT_SECONDS = 10
_DROP_SECONDS = 5
_FETCH = 10_000

_TABLES = """
WITH published AS (
  SELECT p.schemaname, p.tablename, p.attnames, p.rowfilter, named.oid AS publication, n.oid AS namespace,
         c.oid, c.relreplident, c.relkind
    FROM pg_publication_tables p
    JOIN pg_publication named ON named.pubname = p.pubname
    JOIN pg_namespace n ON n.nspname = p.schemaname
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = p.tablename
   WHERE p.pubname = %s AND (%s::oid IS NULL OR c.oid = %s::oid)
), parts AS (
  SELECT oid AS root, oid AS part, NULL::text AS attached FROM published WHERE relkind <> 'p'
   UNION ALL
  SELECT p.oid, t.relid, h.xmin::text
    FROM published p CROSS JOIN pg_partition_tree(p.oid) t LEFT JOIN pg_inherits h ON h.inhrelid = t.relid
   WHERE p.relkind = 'p'
), filled AS (
  SELECT parts.root, a.attname, min((a.attmissingval::text::text[])[1]) AS missing
    FROM parts JOIN pg_attribute a ON a.attrelid = parts.part WHERE a.atthasmissing GROUP BY parts.root, a.attname
), columns AS (
  SELECT p.oid, a.atttypid,
         json_build_array(
           a.attnum, a.attname, a.atttypid::bigint, a.atttypmod,
           (SELECT coalesce(string_agg(format('%%I %%s', of_type.attname, of_type.atttypid), ',' ORDER BY attnum), '')
              FROM pg_type c JOIN pg_attribute of_type ON of_type.attrelid = c.typrelid
             WHERE c.oid IN (t.oid, t.typelem, t.typbasetype) AND of_type.attnum > 0 AND NOT of_type.attisdropped),
           a.xmin::text, filled.root IS NOT NULL,
           CASE WHEN p.relkind <> 'p' THEN filled.missing END) AS described, a.attnum
    FROM published p JOIN pg_attribute a ON a.attrelid = p.oid AND a.attname = ANY (p.attnames)
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN filled ON filled.root = p.oid AND filled.attname = a.attname
   WHERE a.attgenerated = '' OR current_setting('server_version_num')::int >= 180000
), listed AS (
  SELECT oid, json_agg(described ORDER BY attnum) AS columns FROM columns GROUP BY oid
), labels AS (
  SELECT c.oid, json_agg(DISTINCT jsonb_build_array(e.oid::bigint, e.enumlabel)) AS labels
    FROM columns c JOIN pg_type t ON t.oid = c.atttypid
    JOIN pg_enum e ON e.enumtypid IN (t.oid, t.typelem, t.typbasetype) GROUP BY c.oid
), stored AS (
  SELECT parts.root AS oid,
         json_agg(json_build_array(c.oid::bigint, c.relfilenode::bigint, coalesce(attached, ''),
                    -- ATTACH changes all columns, so that none is as it was when the table was made.
                    EXISTS (SELECT 1 FROM pg_attribute a JOIN pg_attribute made ON made.attrelid = a.attrelid
                             WHERE a.attrelid = c.oid AND a.attnum > 0 AND made.attnum = -6
                               AND a.xmin = made.xmin AND a.cmin::text = made.cmin::text))) AS parts,
         json_agg(c.oid::regclass::text) FILTER (WHERE c.relkind NOT IN ('r', 'p') OR c.relpersistence <> 'p')
           AS unlogged
    FROM parts JOIN pg_class c ON c.oid = parts.part GROUP BY parts.root
), keys AS (
  SELECT p.oid, i.indimmediate, coalesce(k.oid, i.indexrelid)::text AS name,
         (SELECT array_agg(a.attname::text ORDER BY n.place)
            FROM unnest(i.indkey) WITH ORDINALITY AS n (number, place)
            JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum = n.number
           WHERE n.place <= i.indnkeyatts) AS columns
    FROM published p JOIN pg_index i ON i.indrelid = p.oid
    LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u')
   WHERE i.indisvalid AND CASE p.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
)
SELECT p.schemaname, p.tablename, p.oid, p.relreplident, p.rowfilter,
       keys.columns, keys.name, coalesce(keys.indimmediate, true),
       coalesce(
         (SELECT max(r.oid::bigint) FROM pg_publication_rel r
           WHERE r.prpubid = p.publication
             AND (r.prrelid = p.oid OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(p.oid)))),
         (SELECT s.oid::bigint FROM pg_publication_namespace s
           WHERE s.pnpubid = p.publication AND s.pnnspid = p.namespace), 0),
       EXISTS (SELECT 1 FROM pg_publication_rel r WHERE r.prpubid = p.publication AND r.prrelid = p.oid),
       json_build_object('root', p.relkind = 'p', 'columns', listed.columns, 'labels', labels.labels,
                         'parts', stored.parts, 'unlogged', stored.unlogged,
                         'last', (SELECT relnatts FROM pg_class WHERE pg_class.oid = p.oid),
                         'dropped', (SELECT coalesce(max(attnum), 0) FROM pg_attribute
                                      WHERE attrelid = p.oid AND attisdropped))
  FROM published p JOIN stored ON stored.oid = p.oid
  LEFT JOIN listed ON listed.oid = p.oid LEFT JOIN labels ON labels.oid = p.oid LEFT JOIN keys ON keys.oid = p.oid
 ORDER BY 1, 2
"""

_DROP_SLOT = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"

_SLOT = """
SELECT slot_type = 'logical' AND plugin = 'pgoutput' AND database = current_database(), active, wal_status,
       confirmed_flush_lsn, pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn),
       pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), safe_wal_size
  FROM pg_replication_slots WHERE slot_name = %s
"""


@dataclass(frozen=True)
class SourceTable:
    """A published table. `key`: the columns that identify its rows in the log; empty for none. `may_swap_keys`: a
    statement may give a row the key of another row before that one has lost it. `filter`: the publication's condition,
    in SQL. `membership`: the oid by which the publication has it, another one once it was left out and taken in again;
    0 in a publication of all tables. `unlogged`: partitions whose changes aren't in the log."""

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    may_swap_keys: bool
    filter: str | None
    membership: int
    catalog: CatalogTable
    unlogged: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def key_places(self) -> tuple[int, ...]:
        """Where the key's columns are among the columns."""
        names = [each.name for each in self.columns]
        return tuple(names.index(each) for each in self.key)


class Identity(NamedTuple):
    """A database. `system`: of its cluster, `timeline` another one after a standby took its place, `lsn` the end of its
    log."""

    system: str
    timeline: int
    lsn: int
    database: str


class UnreadableTable(Exception):
    """A table can't be captured; the message says why, and what to do."""


class TableChanged(Exception):
    """A table was altered while it was read: it has to be read again."""


class Slot(NamedTuple):
    """A replication slot. Sizes in bytes of log: `behind` what isn't acknowledged, `retained` what the source keeps
    because of it, `safe` how much may still be written before the source drops it (None: without limit)."""

    active: bool
    status: str
    confirmed_lsn: int
    behind: int
    retained: int
    safe: int | None


class Chunk(NamedTuple):
    """Rows of a table as one snapshot of transactions saw them, each a list of texts and None."""

    table: SourceTable
    seen: SnapshotOfTransactions
    rows: list[tuple[str | None, ...]]


class Source(Closing):
    """Connections to a source. Reads, but for its own marks in the log and its slot. Not thread-safe."""

    def __init__(self, url: str) -> None:
        """`url`: as libpq takes it; what it doesn't say comes from libpq's environment and files. Connects at once.

        Raises CaptureError for a URL that libpq doesn't take, psycopg2.OperationalError if nobody answers.
        """
        self.dsn = _dsn(url)
        self._connection = self._connect()
        self._connection.autocommit = True
        self._chunks: psycopg2.extensions.connection | None = None

    def close(self) -> None:
        for each in (self._connection, self._chunks):
            if each is not None:
                each.close()

    # --- what there is ----------------------------------------------------------------------------------------

    def identity(self) -> Identity:
        """Which database this is."""
        with self._replication() as cursor:
            cursor.execute("IDENTIFY_SYSTEM")
            [(system, timeline, position, database)] = cursor.fetchall()
            return Identity(system, timeline, parse_lsn(position), database)

    def check(self, publication: str) -> int:
        """The publication's oid. Raises CaptureError, with what to do, if the source can't be captured."""
        if self._connection.server_version < MINIMUM_VERSION:
            raise CaptureError(f"the source is Postgres {self._connection.server_version // 10_000}: capture needs 15")
        [(level,)] = self._rows("SHOW wal_level")
        if level != "logical":
            raise CaptureError(f"the source's wal_level is {level}: set it to logical, and restart Postgres")
        found = self._rows(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, oid FROM pg_publication WHERE pubname = %s",
            publication,
        )
        if not found:
            raise CaptureError(
                f"the source has no publication {publication}: CREATE PUBLICATION {publication} FOR TABLE … makes it"
            )
        if not found[0][0]:
            raise CaptureError(
                f"the publication {publication} leaves out changes: ALTER PUBLICATION {publication}"
                " SET (publish = 'insert, update, delete, truncate')"
            )
        return int(found[0][1])

    def tables(self, publication: str, oid: int | None = None) -> list[SourceTable]:
        """The tables of a publication, or that one of them with an oid."""
        return _tables(self._rows(_TABLES, publication, oid, oid))

    def type_names(self, columns: Sequence[Column]) -> list[str]:
        """How Postgres writes the types of some columns; `???` for a type that has been dropped."""
        oids, modifiers = [each.type_oid for each in columns], [each.modifier for each in columns]
        query = "SELECT format_type(o, m) FROM unnest(%s::oid[], %s::int[]) WITH ORDINALITY AS t (o, m, n) ORDER BY n"
        return [row[0] for row in self._rows(query, oids, modifiers)]

    def seen_now(self) -> SnapshotOfTransactions:
        """Which transactions a query sees now."""
        [(text,)] = self._rows("SELECT pg_current_snapshot()::text")
        return SnapshotOfTransactions.parse(text)

    def mark(self, content: str) -> None:
        """Writes a message into the log, in a transaction of its own. It comes by the stream after all that committed
        before this call."""
        self._rows("SELECT pg_logical_emit_message(true, %s, %s)", MESSAGE_PREFIX, content)

    # --- what its event trigger says --------------------------------------------------------------------------

    def token(self) -> int | None:
        """What messages of the event trigger bear; None if the source isn't prepared, or the user may not read it."""
        query = (
            "SELECT CASE WHEN has_schema_privilege(n.oid, 'USAGE') THEN has_sequence_privilege(c.oid, 'SELECT') END"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relname = 'token' AND c.relkind = 'S'"
        )
        if self._rows(query, SCHEMA) != [(True,)]:
            return None
        try:
            [(found,)] = self._rows(f"SELECT last_value FROM {SCHEMA}.token")
        except (psycopg2.errors.UndefinedTable, psycopg2.errors.InsufficientPrivilege):
            return None  # it was removed just now
        return int(found)

    def prepare(self, role: str | None) -> None:
        """Installs the event trigger, whose token `role` may read. Raises CaptureError for who may not."""
        self._run_together(statements_to_prepare(role))

    def unprepare(self) -> None:
        """Removes the event trigger. Raises CaptureError for who may not."""
        self._run_together([sql.SQL(each) for each in UNPREPARE])

    def _run_together(self, statements: Sequence[sql.Composable]) -> None:
        connection = self._connect()
        try:
            with connection, connection.cursor() as cursor:
                for each in statements:
                    cursor.execute(each)
        except psycopg2.errors.InsufficientPrivilege as error:
            raise CaptureError(f"{said(error)}: event triggers are a superuser's") from None
        except psycopg2.ProgrammingError as error:
            raise CaptureError(f"the source: {said(error)}") from None
        finally:
            connection.close()

    # --- the slot ---------------------------------------------------------------------------------------------

    def slot(self, name: str) -> Slot | None:
        """A slot; None if there is none. Raises CaptureError for a slot that isn't for this."""
        found = self._rows(_SLOT, name)
        if not found:
            return None
        is_ours, active, status, confirmed, behind, retained, safe = found[0]
        if not is_ours:
            raise CaptureError(f"the slot {name} is of another database or plugin: choose another name with --slot")
        lsn = parse_lsn(confirmed) if confirmed else 0
        return Slot(
            active, status or "", lsn, int(behind or 0), int(retained or 0), None if safe is None else int(safe)
        )

    def create_slot(self, name: str) -> None:
        """Makes a slot; changes count from here on. Waits for the transactions that write now."""
        self._rows("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", name)

    def drop_slot(self, name: str) -> bool:
        """Drops a slot. False if there was none. Raises CaptureError if it is in use.

        Waits some seconds for that to end: the source keeps a slot for a moment after its capture has stopped.
        """
        attempts = Retrying(
            retry=retry_if_exception_type(psycopg2.errors.ObjectInUse),
            stop=stop_after_delay(_DROP_SECONDS),
            wait=wait_fixed(0.1),
            reraise=True,
        )
        try:
            return bool(attempts(self._rows, _DROP_SLOT, name))
        except psycopg2.errors.ObjectInUse:
            raise CaptureError(f"the slot {name} is in use: stop the capture first") from None

    def retention_limit(self) -> int:
        """How much log the source keeps for a slot, in MB; -1 for all of it."""
        [(found,)] = self._rows("SELECT setting::int FROM pg_settings WHERE name = 'max_slot_wal_keep_size'")
        return int(found)

    @contextmanager
    def stream(self, slot: str, publication: str) -> Iterator[Stream]:
        """The changes that a slot hasn't acknowledged.

        Raises SlotLost if the source has removed what the slot hasn't acknowledged, psycopg2.Error.
        """
        with self._replication() as cursor:
            options = {"proto_version": "1", "publication_names": f'"{publication}"', "messages": "true"}
            try:
                cursor.start_replication(slot_name=slot, options=options)
            except psycopg2.errors.ObjectNotInPrerequisiteState as error:
                raise SlotLost(
                    f"the slot {slot} can't be read: {str(error).strip()}; start again with --new-snapshot"
                ) from None
            yield Stream(cursor.connection)

    # --- rows -------------------------------------------------------------------------------------------------

    def chunk(
        self,
        publication: str,
        oid: int,
        key: tuple[str, ...],
        after: tuple[str, ...] | None,
        limit: int,
        *,
        among: Collection[tuple[str, ...]] | None = None,
    ) -> Chunk | None:
        """The next rows of a table in the order of its key, or those `among` some keys. Nothing is locked.

        `key`: the key's columns that `after` is of; if the table has another key by now, the chunk begins anew. None if
        the table isn't published any more, or has no key. Raises TableChanged for one that is altered meanwhile, and
        psycopg2.Error.
        """
        with self._reading() as cursor:
            [(seen,)] = _fetched(cursor, "SELECT pg_current_snapshot()::text", ())
            found = _tables(_fetched(cursor, _TABLES, (publication, oid, oid)))
            if not found or not found[0].key:
                return None
            table = _readable(found[0])
            after = after if key == table.key else None
            query, values = _chunk_query(table, after, among, limit)
            _as_text(cursor)
            rows = _fetched(cursor, query, values)
            self._check_still(publication, table)
            return Chunk(table, SnapshotOfTransactions.parse(seen), rows)

    @contextmanager
    def whole(
        self, publication: str, oid: int
    ) -> Iterator[tuple[SourceTable, int, Iterator[tuple[str | None, ...]]] | None]:
        """A table, a position in the log, and all rows as of exactly there; None if it isn't published any more.

        A temporary slot gives the position. It waits for the transactions that write now. Raises TableChanged for a
        table that is altered meanwhile, and psycopg2.Error.
        """
        with self._replication() as exporting:
            name = f"metastore_snapshot_{exporting.connection.info.backend_pid}"
            exporting.execute(f'CREATE_REPLICATION_SLOT "{name}" TEMPORARY LOGICAL pgoutput EXPORT_SNAPSHOT')
            [(_, position, snapshot, _)] = exporting.fetchall()
            with self._reading() as cursor:
                cursor.execute("SET TRANSACTION SNAPSHOT %s", (snapshot,))
                found = _tables(_fetched(cursor, _TABLES, (publication, oid, oid)))
                if not found:
                    yield None
                    return
                _readable(found[0])
                with cursor.connection.cursor("whole") as rows:
                    rows.itersize = _FETCH
                    _as_text(rows)
                    rows.execute(_select(found[0], with_values=False))
                    self._check_still(publication, found[0])
                    yield found[0], parse_lsn(position), rows

    def _check_still(self, publication: str, table: SourceTable) -> None:
        """Raises TableChanged if the table isn't as the transaction that reads it saw it in the catalog.

        A query sees the latest definition, and no rows that were written into a new file after its transaction began.
        From the query on the table is locked against such changes, until the transaction ends.
        """
        if [each.catalog for each in self.tables(publication, table.oid)] != [table.catalog]:
            raise TableChanged(f"{table.name} was changed while it was read")

    # --- connections ------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """A transaction in which all statements see the same."""
        if self._chunks is None or self._chunks.closed:
            self._chunks = self._connect()
            self._chunks.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with self._chunks, self._chunks.cursor() as cursor:
            yield cursor

    @contextmanager
    def _replication(self) -> Iterator[ReplicationCursor]:
        connection = self._connect(connection_factory=LogicalReplicationConnection)
        try:
            with connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()

    def _connect(self, **options: Any) -> Any:
        # Marks in the log needn't wait for replicas.
        settings = {**SESSION_SETTINGS, "synchronous_commit": "local"}
        listed = " ".join(f"-c {name}={value.replace(' ', '')}" for name, value in settings.items())
        return psycopg2.connect(
            self.dsn,
            connect_timeout=_CONNECT_SECONDS,
            application_name="metastore capture",
            options=listed,
            keepalives_idle=30,
            **options,
        )

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._connection.cursor() as cursor:
            return _fetched(cursor, query, values)


@contextmanager
def open_source(url: str) -> Iterator[Source]:
    """A source for one look at it. What goes wrong with it in the block is a CaptureError."""
    try:
        with Source(url) as opened:
            yield opened
    except psycopg2.Error as error:
        raise CaptureError(f"the source: {said(error)}") from None


def _dsn(url: str) -> str:
    """The connection string for a URL, also one of SQLAlchemy's. Raises CaptureError."""
    plain = re.sub(r"^(postgres(?:ql)?)\+\w+://", r"\1://", url)
    if not re.match(r"^postgres(ql)?://", plain):
        raise CaptureError("the source is a URL of the form postgresql://USER@HOST:5432/DATABASE")
    try:
        return str(psycopg2.extensions.make_dsn(plain))
    except psycopg2.ProgrammingError as error:
        raise CaptureError(f"libpq doesn't take the source's URL: {str(error).strip()}") from None


def _tables(rows: Sequence[Any]) -> list[SourceTable]:
    found = []
    for schema, table, oid, identity, filter, key, key_name, is_immediate, membership, is_named, sent in rows:
        catalog = catalog_table(sent, key_name, is_named=is_named)
        names = {each.name for each in catalog.columns}
        own = tuple(key) if key and set(key) <= names else ()
        columns = tuple(Column(each.name, each.type_oid, each.modifier, each.name in own) for each in catalog.columns)
        unlogged = tuple(sent["unlogged"] or ())
        made = SourceTable(
            oid, schema, table, identity, columns, own, not is_immediate, filter, membership, catalog, unlogged
        )
        found.append(made)
    return found


def _readable(table: SourceTable) -> SourceTable:
    """The table. Raises UnreadableTable if the log doesn't bring its changes."""
    if table.unlogged:
        raise UnreadableTable(
            f"changes of {', '.join(table.unlogged[:3])} aren't in the log, since it is foreign, unlogged or temporary:"
            " detach it, or leave the table out of the publication"
        )
    return table


def said(error: Exception) -> str:
    """An error's message, in one line."""
    return " ".join(str(error).split())


def _select(table: SourceTable, *, with_values: bool) -> sql.Composed:
    columns = sql.SQL(", ").join(sql.Identifier(each.name) for each in table.columns)
    condition = sql.SQL(f" WHERE ({table.filter})" if table.filter else " WHERE true")
    if with_values and table.filter:
        condition = sql.SQL(condition.string.replace("%", "%%"))
    # Tables that inherit from this one have changes of their own.
    only = sql.SQL("" if table.catalog.is_root else "ONLY ")
    return sql.SQL("SELECT {} FROM {}{}").format(columns, only, sql.Identifier(table.schema, table.table)) + condition


def _chunk_query(
    table: SourceTable,
    after: tuple[str, ...] | None,
    among: Collection[tuple[str, ...]] | None,
    limit: int,
) -> tuple[sql.Composed, list[object]]:
    """The query of a chunk, and its values. These are literals without a type, which take that of their column."""
    key = sql.SQL(", ").join(map(sql.Identifier, table.key))
    one = sql.SQL("({})").format(sql.SQL(", ").join([sql.Placeholder()] * len(table.key)))
    query, values = _select(table, with_values=True), []
    if among is not None:
        listed = sql.SQL(", ").join([one] * len(among))
        query += sql.SQL(" AND ({}) IN ({})").format(key, listed)
        values = [value for each in among for value in each]
    elif after is not None:
        query += sql.SQL(" AND ({}) > {}").format(key, one)
        values = [*after]
    return query + sql.SQL(" ORDER BY {} LIMIT %s").format(key), [*values, limit]


def _fetched(cursor: Any, query: Any, values: Sequence[object]) -> list[Any]:
    cursor.execute(query, values or None)
    return cursor.fetchall() if cursor.description else []


_TEXTS = psycopg2.extensions.new_type(
    tuple(psycopg2.extensions.string_types), "METASTORE_TEXT", lambda value, cursor: value
)


def _as_text(cursor: Any) -> None:
    """Values of all types come as Postgres writes them, as they do by the log."""
    psycopg2.extensions.register_type(_TEXTS, cursor)
