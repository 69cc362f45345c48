"""Lets a Postgres write into its log what statements change in tables' definitions, in order with the rows.

An event trigger does so, by pg_logical_emit_message in the transaction of the statement. It never lets a statement
fail. What it says bears a token that only the capture's role can read, since every user may write messages.
"""

import json
import secrets
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from psycopg2 import sql

from lake.capture.schemas import MAX_STATEMENT

PREFIX: Final = "lake.capture.ddl"
"""Of the messages in the log."""

SCHEMA: Final = "lake_capture"
"""What is made at the source is in this schema, but for the triggers, which have no schema."""

TRIGGERS: Final = ("lake_capture_altered", "lake_capture_dropped")

_ALTERS: Final = ("ALTER TABLE", "ALTER TYPE")
_DROPS: Final = (
    *("DROP TYPE", "DROP DOMAIN", "DROP SCHEMA", "DROP EXTENSION", "DROP OWNED", "DROP FUNCTION", "DROP COLLATION"),
    "DROP TABLE",
)
"""Statements that drop columns with what they are of. Those that ALTER TABLE drops are said by the other trigger."""

_LARGEST: Final = 16 << 20
"""Bytes of a message. Of a table with more columns and partitions nothing is said."""

# Parts of a table are altered with it, and tables with the types of their columns. A sequence has the token, since it
# is in no publication, and its value is seen by who may read it alone.
_FUNCTION = """
CREATE OR REPLACE FUNCTION lake_capture.say_change() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  named oid[];
  types oid[];
  said text;
BEGIN
  BEGIN
    IF tg_event = 'sql_drop' THEN
      SELECT array_agg(objid) INTO named FROM pg_event_trigger_dropped_objects() WHERE object_type = 'table column';
    ELSE
      SELECT array_agg(objid) FILTER (WHERE classid = 'pg_class'::regclass),
             array_agg(objid) FILTER (WHERE classid = 'pg_type'::regclass)
        INTO named, types FROM pg_event_trigger_ddl_commands();
      types := types || (SELECT array_agg(oid) FROM pg_type WHERE typrelid = ANY (named));
    END IF;
    WITH RECURSIVE found AS (
      SELECT unnest(named) AS oid
       UNION
      SELECT a.attrelid FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
       WHERE t.oid = ANY (types) OR t.typelem = ANY (types) OR t.typbasetype = ANY (types)
    ), parts AS (
      SELECT oid FROM found UNION SELECT h.inhrelid FROM parts JOIN pg_inherits h ON h.inhparent = parts.oid
    ), altered AS (
      SELECT json_agg(json_build_object('oid', c.oid::bigint, 'columns',
               (SELECT coalesce(json_agg(json_build_array(a.attnum, a.attname, format_type(a.atttypid, a.atttypmod))
                                  ORDER BY a.attnum), '[]'::json)
                  FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))) AS tables
        FROM parts JOIN pg_class c ON c.oid = parts.oid
       WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
    )
    SELECT json_build_object('token', t.last_value, 'tables', altered.tables,
                             'statement', left(current_query(), STATEMENT))::text
      INTO said FROM altered, lake_capture.token t WHERE altered.tables IS NOT NULL;
  EXCEPTION WHEN OTHERS THEN
    RAISE LOG 'lake_capture: a change of tables is not in the log: %', sqlerrm;
  END;
  -- Outside of the block, which is a subtransaction: its messages would come behind later changes.
  IF octet_length(said) <= LARGEST THEN
    PERFORM pg_logical_emit_message(true, 'PREFIX', said);
  ELSIF said IS NOT NULL THEN
    RAISE LOG 'lake_capture: a change of tables is not in the log, since it is too large';
  END IF;
END $function$
"""
_FUNCTION = (
    _FUNCTION.replace("PREFIX", PREFIX)
    .replace("STATEMENT))", f"{MAX_STATEMENT + 1}))")
    .replace("LARGEST", str(_LARGEST))
)


def _trigger(name: str, event: str, tags: tuple[str, ...]) -> list[str]:
    listed = ", ".join(f"'{each}'" for each in tags)
    return [
        f"DROP EVENT TRIGGER IF EXISTS {name}",
        f"CREATE EVENT TRIGGER {name} ON {event} WHEN TAG IN ({listed}) EXECUTE FUNCTION {SCHEMA}.say_change()",
        f"ALTER EVENT TRIGGER {name} ENABLE ALWAYS",
    ]


def statements_to_prepare(role: str | None) -> list[sql.Composable]:
    """What a superuser runs in one transaction, as often as one likes. `role`: reads the token; None for the
    superuser's own."""
    made = [
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
        f"CREATE SEQUENCE IF NOT EXISTS {SCHEMA}.token",
        # Its first value is 1 until this; the number isn't in the catalog, which all may read.
        f"SELECT setval('{SCHEMA}.token', {secrets.randbelow(1 << 62) + 2}) FROM {SCHEMA}.token WHERE last_value = 1",
        _FUNCTION.strip(),
        *_trigger(TRIGGERS[0], "ddl_command_end", _ALTERS),
        *_trigger(TRIGGERS[1], "sql_drop", _DROPS),
    ]
    found: list[sql.Composable] = [sql.SQL(each) for each in made]
    if role is not None:
        for what in (f"USAGE ON SCHEMA {SCHEMA}", f"SELECT ON SEQUENCE {SCHEMA}.token"):
            found.append(sql.SQL(f"GRANT {what} TO {{}}").format(sql.Identifier(role)))
    return found


UNPREPARE: Final = (
    *(f"DROP EVENT TRIGGER IF EXISTS {each}" for each in TRIGGERS),
    f"DROP FUNCTION IF EXISTS {SCHEMA}.say_change()",
    f"DROP SEQUENCE IF EXISTS {SCHEMA}.token",
    f"DROP SCHEMA IF EXISTS {SCHEMA}",
)
"""What a superuser runs to remove all of it. Fails if somebody has put something of their own into the schema."""


class AlteredTable(NamedTuple):
    """A table that a statement has altered. `columns`: their numbers, names and types from then on."""

    oid: int
    columns: list[tuple[int, str, str]]


@dataclass(frozen=True)
class SaidChange:
    """What a message of the trigger says."""

    token: int
    statement: str
    tables: list[AlteredTable]

    @classmethod
    def parse(cls, content: bytes) -> "SaidChange | None":
        """None for a message that isn't the trigger's."""
        try:
            found = json.loads(content.decode(errors="replace"))
            tables = [
                AlteredTable(int(each["oid"]), [(int(number), str(name), str(kind)) for number, name, kind in columns])
                for each in found["tables"]
                for columns in [each["columns"]]
            ]
            return cls(_number(found["token"]), str(found["statement"]), tables)
        except (ValueError, KeyError, TypeError):
            return None


def _number(given: Any) -> int:
    if type(given) is not int:
        raise TypeError
    return given
