"""`metastore capture`: the changes of a database, as they come, in a raw table."""

import importlib.util
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lake.cli.commands.schema_changes import policy_of, policy_option
from lake.cli.confirming import confirm
from lake.cli.connection import connect, uri_option
from lake.cli.group import Group
from lake.cli.lake import table_parts
from lake.cli.output import counted, json_option, print_json, print_list, print_record
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.capture.any_state import AnyState
    from lake.capture.debezium.state import DebeziumState
    from lake.capture.mysql.state import MysqlState
    from lake.capture.postgres.state import State
    from lake.capture.runner import Runner
    from lake.tables.lake import LakeClient

    Make = Callable[[LakeClient], Runner[Any, Any]]
    """Makes a capture that runs with a client."""

DEFAULT_ALARM = 1 << 30
_PROGRESS_SECONDS = 2.0


class _CaptureGroup(Group):
    """Takes a source's URL in the place of a command as `run`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, ["run", *args] if "://" in args[0] else args)


@click.group(cls=_CaptureGroup)
def capture() -> None:
    """Capture the changes of a database into a raw table.

    SOURCE is a URL such as postgresql://capture@db.example/shop. The password comes from PGPASSWORD, from a file
    (~/.pgpass, PGPASSFILE) or from a service (?service=shop); that of mysql://capture@db.example/shop, a MariaDB, from
    MYSQL_PWD or ~/.my.cnf. With --debezium it is a file or a directory of Debezium's
    messages, or kafka://host:port?topic=NAME. `metastore capture SOURCE …` is `metastore capture run SOURCE …`.

    \b
    Examples:
      metastore capture postgresql://capture@db.example/shop --publication lake --into raw.shop
      metastore capture status postgresql://capture@db.example/shop --into raw.shop
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UserError("pyarrow is missing: pip install 'lake-metastore-client[capture]'")


def _into_option(command: Any) -> Any:
    return click.option("--into", required=True, metavar="DATABASE.TABLE", callback=_table_name, help="The raw table.")(
        command
    )


def _table_name(_: click.Context, __: click.Parameter, value: str) -> str:
    return ".".join(table_parts(value))


def _slot_of(slot: str | None, into: str) -> str:
    """The name of the slot, by default after the raw table."""
    if slot is not None:
        return slot
    plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in into.lower())
    return f"metastore_{plain}"[:63]


@capture.command()
@click.argument("source")
@click.option("--publication", metavar="NAME", help="Publication of the source.")
@_into_option
@uri_option
@click.option("--slot", metavar="NAME", help="The replication slot. [default: metastore_DATABASE_TABLE]")
@click.option(
    "--table", "tables", multiple=True, metavar="DATABASE.TABLE", help="MariaDB: these only. [default: the database's]"
)
@click.option(
    "--debezium", is_flag=True, help="SOURCE has Debezium's messages: files of JSON lines, or topics of Kafka."
)
@click.option("--key", "keys", multiple=True, metavar="SCHEMA.TABLE=COLUMN,…", help="A key that messages don't give.")
@click.option(
    "--kafka-options",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="librdkafka's options, `name=value` in each line; logins are there.",
)
@click.option(
    "--placeholder", metavar="TEXT", help="The connector's unavailable.value.placeholder. [default: Debezium's]"
)
@click.option("--once", is_flag=True, help="End when all that was there at the start is captured.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 3_600), default=5.0, show_default=True, help="Seconds between two commits."
)
@click.option("--new-snapshot", is_flag=True, help="Read everything again, with a new slot or from the first message.")
@click.option(
    "--alarm-bytes",
    type=click.IntRange(1),
    default=DEFAULT_ALARM,
    show_default=True,
    help="Warn when the source keeps more log than this for the slot.",
)
@click.option("--metrics-port", type=click.IntRange(1, 65_535), metavar="N", help="Where /metrics is. [default: none]")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A schema-changes.yml: warn of changes of tables that it holds, and heed what it says of untouched rows.",
)
@click.option(
    "--held-hours",
    type=click.FloatRange(0),
    default=72.0,
    show_default=True,
    help="Warn again of a change that is held for longer.",
)
@click.option(
    "--held-bytes",
    type=click.IntRange(0),
    default=10 << 30,
    show_default=True,
    help="Warn again once more than this is captured of its table.",
)
@json_option
def run(
    source: str,
    publication: str | None,
    into: str,
    uri: str,
    slot: str | None,
    tables: tuple[str, ...],
    debezium: bool,
    keys: tuple[str, ...],
    kafka_options: str | None,
    placeholder: str | None,
    once: bool,
    interval: float,
    new_snapshot: bool,
    alarm_bytes: int,
    metrics_port: int | None,
    policy: Path | None,
    held_hours: float,
    held_bytes: int,
    as_json: bool,
) -> None:
    """Capture the rows that are there, and every change.

    \b
    Examples:
      metastore capture run postgresql://capture@db.example/shop --publication lake --into raw.shop
      metastore capture run 'postgresql:///?service=shop' --publication lake --into raw.shop --once
      metastore capture run mysql://capture@db.example/shop --into raw.shop
      metastore capture run /landing/shop --debezium --into raw.shop
      metastore capture run 'kafka://broker:9092?topic=shop.public.orders' --debezium --into raw.shop
    """
    from prometheus_client import start_http_server

    from lake.tables.lake import LakeClient

    make: Make
    is_mysql = source.partition("://")[0] in ("mysql", "mariadb")
    if tables and (debezium or not is_mysql):
        raise click.UsageError("--table is for MariaDB: a publication says which tables of Postgres are captured")
    if debezium:
        make = _messages(source, into, keys, kafka_options, placeholder, interval=interval, new_snapshot=new_snapshot)
        if publication is not None or slot is not None:
            raise click.UsageError("--publication and --slot are a database's: not with --debezium")
    else:
        if keys or kafka_options or placeholder:
            raise click.UsageError("--key, --kafka-options and --placeholder go with --debezium")
        if is_mysql and (publication is not None or slot is not None):
            raise click.UsageError("--publication and --slot are for Postgres")
    given = {"interval": interval, "alarm_bytes": alarm_bytes, "new_snapshot": new_snapshot}
    if is_mysql and not debezium:
        make = _mysql(source, into, tables, untouched=policy_of(policy).of_untouched, **given)
    elif not debezium:
        make = _database(source, into, publication, slot, untouched=policy_of(policy).of_untouched, **given)
    with connect(uri):  # says at once if nobody answers
        pass
    if metrics_port is not None:
        start_http_server(metrics_port, "127.0.0.1")
    with LakeClient(uri) as client:
        running = make(client)
        _report(running)
        if policy is not None:
            _watch(running, client, into, policy, held_hours, held_bytes)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in handlers:
            signal.signal(number, lambda *_: running.stop())
        try:
            result = running.run(once=once)
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
    if as_json:
        print_json({"batches": result.batches, "rows": result.rows, "troubles": result.troubles})
    else:
        print_list("table", ("table", "rows"), sorted(result.rows.items()))
    if (trouble := _unreadable(result.troubles)) is not None:
        raise UserError(trouble)


def _watch(running: "Runner[Any, Any]", client: "LakeClient", into: str, policy: Path, hours: float, size: int) -> None:
    """Lets a capture warn of held changes, first of those that there are, and of those that are held beyond bounds.

    Raises UserError.
    """
    rules = policy_of(policy)
    from lake.capture.any_state import any_state
    from lake.capture.raw_table import RawTable
    from lake.capture.schema_changes.watch import Bounds, Watch
    from lake.protocol.hive import NoSuchObjectException

    watch = Watch(client.table(into), rules, Bounds(hours, size))
    report = running.on_commit

    def look(state: "AnyState") -> None:
        report(state)
        watch.remind()

    with suppress(NoSuchObjectException):  # the capture makes the table
        state = RawTable(client, into).latest(any_state, even_undone=True)
        watch.look(state.tables if state is not None else ())
    running.on_defined, running.on_commit = watch.look, look


def _unreadable(troubles: Mapping[str, str]) -> str | None:
    """Names tables that can't be read."""
    listed = "; ".join(f"{name}: {why}" for name, why in sorted(troubles.items()))
    return f"not captured, while all others are: {listed}" if listed else None


def _database(source: str, into: str, publication: str | None, slot: str | None, **options: Any) -> "Make":
    """What makes the capture of a database."""
    from lake.capture.postgres.capture import Capture, Options

    scheme = source.partition("://")[0]
    if scheme == "kafka":
        raise UserError(f"{scheme} is captured from Debezium's messages alone: give these, and --debezium")
    if publication is None:
        raise click.UsageError("Missing option '--publication'.")
    made = Options(source=source, publication=publication, into=into, slot=_slot_of(slot, into), **options)
    return lambda client: Capture(client, made)


def _mysql(source: str, into: str, tables: tuple[str, ...], **options: Any) -> "Make":
    """What makes the capture of a MariaDB."""
    try:
        from lake.capture.mysql.capture import MysqlCapture, MysqlOptions
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing: pip install 'lake-metastore-client[mysql]'") from None
    made = MysqlOptions(source=source, into=into, tables=tables, **options)
    return lambda client: MysqlCapture(client, made)


def _messages(
    source: str,
    into: str,
    keys: tuple[str, ...],
    kafka_options: str | None,
    placeholder: str | None,
    **options: Any,
) -> "Make":
    """What makes the capture of Debezium's messages."""
    from lake.capture.debezium.capture import DebeziumCapture, DebeziumOptions

    by_table = {}
    for each in keys:
        table, equals, columns = each.partition("=")
        if not equals or not table or not all(columns.split(",")):
            raise click.UsageError(f"--key {each}: give SCHEMA.TABLE=COLUMN,COLUMN")
        by_table[table] = tuple(columns.split(","))
    if placeholder:
        options["placeholder"] = placeholder
    kafka = {} if kafka_options is None else _properties(kafka_options)
    made = DebeziumOptions(source=source, into=into, keys=by_table, kafka=kafka, **options)
    return lambda client: DebeziumCapture(client, made)


def _properties(path: str) -> dict[str, str]:
    """The lines `name=value` of a file; empty ones and those that begin with # don't count."""
    found = {}
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not equals:
            raise UserError(f"{path}, line {number}: give name=value")
        found[name.strip()] = value.strip()
    return found


def _report(running: "Runner[Any, Any]") -> None:
    """Says on stderr how far the capture has come, every other second at most."""
    next_report = time.monotonic() + _PROGRESS_SECONDS

    def report(state: "AnyState") -> None:
        nonlocal next_report
        if time.monotonic() < next_report:
            return
        next_report = time.monotonic() + _PROGRESS_SECONDS
        reading = [name for name, each in state.tables.items() if getattr(each, "phase", "done") != "done"]
        doing = f"reading {', '.join(reading[:3])}" if reading else "following the log"
        click.echo(f"{counted(sum(running.result.rows.values()), 'row')} captured, {doing}", err=True)

    running.on_commit = report


@capture.command()
@click.argument("source", required=False)
@_into_option
@uri_option
@click.option(
    "--alarm-bytes",
    type=click.IntRange(1),
    default=DEFAULT_ALARM,
    show_default=True,
    help="Exit with 1 if the source keeps more log than this for the slot.",
)
@json_option
def status(source: str | None, into: str, uri: str, alarm_bytes: int, as_json: bool) -> None:
    """Show how far a capture and its slot are behind.

    \b
    Example:
      metastore capture status postgresql://capture@db.example/shop --into raw.shop
    """
    from lake.capture.debezium.state import DebeziumState
    from lake.capture.mysql.state import MysqlState
    from lake.capture.postgres.positions import format_lsn

    state = _state(uri, into)
    if isinstance(state, DebeziumState):
        _print_messages(state, as_json=as_json)
        return
    found: dict[str, object]
    if isinstance(state, MysqlState):
        found = {"server": state.server, "epoch": state.epoch, "position": str(state.position)}
    else:
        found = {
            "slot": state.slot,
            "publication": state.publication,
            "epoch": state.epoch,
            "position": format_lsn(state.lsn),
        }
    found |= {"batches": state.batch, "snapshot": "done" if state.is_snapshot_done else "reading"}
    trouble = None
    if source is not None and isinstance(state, MysqlState):
        trouble = _log_status(source, state, alarm_bytes, found)
    elif source is not None and not isinstance(state, MysqlState):
        trouble = _slot_status(source, state, alarm_bytes, found)
    trouble = trouble or _unreadable(state.troubles)
    tables = [
        (name, "unreadable" if name in state.troubles else each.phase.value, each.rows)
        for name, each in sorted(state.tables.items())
    ]
    if as_json:
        listed = [{"table": name, "snapshot": phase, "rows": rows} for name, phase, rows in tables]
        print_json({**found, "alarm": trouble, "tables": listed})
    else:
        print_record(found)
        print_list("table", ("table", "snapshot", "rows read"), tables)
    if trouble is not None:
        raise UserError(trouble)


def _print_messages(state: "DebeziumState", *, as_json: bool) -> None:
    """Prints how far a capture of Debezium's messages has come."""
    found: dict[str, object] = {
        "source": state.source,
        "epoch": state.epoch,
        "messages": state.number,
        "batches": state.batch,
    }
    tables = [
        (name, "reading" if each.is_read_again else "done", each.rows) for name, each in sorted(state.tables.items())
    ]
    offsets = [(name, each.at) for name, each in sorted(state.offsets.items())]
    if as_json:
        listed = [{"table": name, "snapshot": phase, "rows": rows} for name, phase, rows in tables]
        print_json({**found, "tables": listed, "offsets": dict(offsets)})
    else:
        print_record(found)
        print_list("table", ("table", "snapshot", "rows"), tables)
        print_list("place", ("place", "next offset"), offsets)


def _log_status(source: str, state: "MysqlState", alarm_bytes: int, found: dict[str, object]) -> str | None:
    """Adds what is known of a MariaDB's log; returns what is wrong with it."""
    from lake.capture.errors import SlotLost
    from lake.capture.mysql.source import open_source

    with open_source(source) as opened:
        try:
            opened.check_position(state.position, state.gtid)
        except SlotLost as lost:
            return str(lost)
        behind = opened.behind(state.position)
    found["lag_bytes"] = behind
    return (
        f"{behind:,} bytes of the source's log aren't captured: is the capture running?"
        if behind > alarm_bytes
        else None
    )


def _slot_status(source: str, state: "State", alarm_bytes: int, found: dict[str, object]) -> str | None:
    """Adds what is known of the slot; returns what is wrong with it."""
    from lake.capture.postgres.source import open_source

    with open_source(source) as opened:
        slot = opened.slot(state.slot)
        limit, token = opened.retention_limit(), opened.token()
    if slot is None:
        return f"the source has no slot {state.slot} any more: start again with --new-snapshot"
    found |= {
        "active": slot.active,
        "slot_status": slot.status,
        "lag_bytes": slot.behind,
        "retained_bytes": slot.retained,
        "safe_bytes": slot.safe,
        "retention_limit_mb": None if limit < 0 else limit,
        "event_trigger": token is not None,
    }
    if slot.status == "lost":
        return f"the source has dropped the log that {state.slot} needs: start again with --new-snapshot"
    if slot.retained > alarm_bytes:
        return f"the source keeps {slot.retained:,} bytes of log for {state.slot}: is the capture running?"
    return None


@capture.command()
@click.argument("source")
@_into_option
@uri_option
@click.option("--slot", metavar="NAME", help="The replication slot. [default: that of the raw table]")
@click.option("--yes", "-y", is_flag=True, help="Don't ask.")
@json_option
def drop(source: str, into: str, uri: str, slot: str | None, yes: bool, as_json: bool) -> None:
    """Drop the slot of a capture that has ended for good.

    The source no longer keeps log for it. The raw table stays.

    \b
    Example:
      metastore capture drop postgresql://capture@db.example/shop --into raw.shop
    """
    from lake.capture.postgres.source import open_source

    name = slot if slot is not None else _slot_name(uri, into)
    confirm(f"Drop the slot {name}? What it hasn't brought yet is lost.", yes=yes)
    with open_source(source) as opened:
        dropped = opened.drop_slot(name)
    if as_json:
        print_json({"slot": name, "dropped": dropped})
    else:
        click.echo(f"{name} is dropped" if dropped else f"there was no slot {name}", err=True)


@capture.command("read-again")
@_into_option
@uri_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    required=True,
    metavar="SCHEMA.TABLE",
    help="The table; several by repeating it.",
)
def read_again(into: str, uri: str, tables: tuple[str, ...]) -> None:
    """Let a capture read all rows of a table again.

    For rows that were changed without the source's log. The capture that runs begins within ten seconds, and one that
    doesn't run when it starts. Typed tables stay as they were until all rows are read. Not for Debezium's messages.

    \b
    Example:
      metastore capture read-again --into raw.shop --table public.orders
    """
    from lake.capture.debezium.state import DebeziumState
    from lake.capture.rereads import order
    from lake.tables.lake import LakeClient

    state = _state(uri, into)
    if isinstance(state, DebeziumState):
        raise UserError("rows come by Debezium's messages: let its connector send them again")
    if unknown := [each for each in tables if each not in state.tables]:
        raise UserError(f"{into} has no table {unknown[0]}")
    with LakeClient(uri) as client:
        order(client.table(into), tables)
    click.echo(f"{counted(len(tables), 'table')} will be read again", err=True)


@capture.command()
@click.argument("source")
@click.option("--role", metavar="NAME", help="The capture's user, if it isn't a superuser.")
def prepare(source: str, role: str | None) -> None:
    """Let a Postgres write changes of tables into its log.

    An event trigger, which a superuser may install, writes each ALTER TABLE and ALTER TYPE into the log, in order with
    the rows: its text, and the numbers of the table's columns. So a capture that is behind, too, tells a renamed column
    from another one. A statement never fails for it. May be repeated.

    \b
    Example:
      metastore capture prepare postgresql://postgres@db.example/shop --role capture
    """
    from lake.capture.postgres.source import open_source

    with open_source(_postgres(source)) as opened:
        opened.prepare(role)
    click.echo("changes of tables are written into the log from now on", err=True)


@capture.command()
@click.argument("source")
def unprepare(source: str) -> None:
    """Remove what `prepare` has installed in a Postgres.

    \b
    Example:
      metastore capture unprepare postgresql://postgres@db.example/shop
    """
    from lake.capture.postgres.source import open_source

    with open_source(_postgres(source)) as opened:
        opened.unprepare()
    click.echo("the event trigger is removed", err=True)


def _postgres(source: str) -> str:
    """The URL of a Postgres. Raises UserError for other sources, whose logs have their statements anyway."""
    if source.partition("://")[0] not in ("postgresql", "postgres"):
        raise UserError("only Postgres is prepared: give postgresql://USER@HOST/DATABASE")
    return source


@capture.command()
@_into_option
@uri_option
@click.option("--table", "tables", multiple=True, metavar="SCHEMA.TABLE", help="These only. [default: all]")
@click.option(
    "--misfits",
    type=click.Choice(["hold", "quarantine"]),
    default="hold",
    show_default=True,
    help="Where a value doesn't fit its column's type: let the refresh fail, or keep the change in NAME_misfits.",
)
@policy_option
def definitions(into: str, uri: str, tables: tuple[str, ...], misfits: str, policy: Path | None) -> None:
    """Print definitions of typed tables for `metastore pipeline`.

    One for each captured table that has a key. A table whose definitions can't be printed is named in a comment. Two
    tables of one name get their schemas before it. With --policy, columns that it holds or ignores are left out, and
    while another change of a table is held, its columns before that flow on.

    \b
    Examples:
      metastore capture definitions --into raw.shop > shop/transformations/ods.sql
      metastore capture definitions --into raw.shop --table public.orders --misfits quarantine
    """
    rules = None if policy is None else policy_of(policy)  # says what is missing to read it
    from lake.capture.definitions import definition, names_of
    from lake.capture.errors import CaptureError
    from lake.capture.schema_changes.decisions import with_decisions
    from lake.tables.lake import LakeClient

    state = _state(uri, into)
    if unknown := [each for each in tables if each not in state.tables]:
        raise UserError(f"{into} has no table {unknown[0]}")
    names = names_of(state.tables)
    with LakeClient(uri) as client:
        for table in tables or sorted(state.tables):
            try:
                if table in state.troubles:
                    raise CaptureError(f"{table} can't be read: {state.troubles[table]}")
                lake, quarantines = client.table(into), misfits == "quarantine"
                known = None if rules is None else with_decisions(rules, lake)
                click.echo(definition(lake, table, names[table], quarantines=quarantines, policy=known))
            except CaptureError as error:
                if tables:
                    raise
                click.echo(f"-- {error}\n")
                click.echo(str(error), err=True)


def _slot_name(uri: str, into: str) -> str:
    """The slot of a raw table. Raises UserError for one that has none."""
    from lake.capture.postgres.state import State

    state = _state(uri, into)
    if not isinstance(state, State):
        raise UserError(f"{into} isn't captured from Postgres: there is no slot")
    return state.slot


def _state(uri: str, into: str) -> "AnyState":
    """How far a capture has come. Raises UserError for a table that none writes."""
    from lake.capture.any_state import any_state
    from lake.capture.raw_table import RawTable
    from lake.protocol.hive import NoSuchObjectException
    from lake.tables.lake import LakeClient

    with connect(uri), LakeClient(uri) as client:
        try:
            state = RawTable(client, into).latest(any_state)
        except NoSuchObjectException:
            state = None
    if state is None:
        raise UserError(f"nothing was captured into {into}")
    return state
