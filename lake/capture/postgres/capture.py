"""The capture itself: from a slot of a source into a raw table, again and again, through failures of both."""

import logging
import time
import uuid
from dataclasses import dataclass

import psycopg2

from lake.capture import metrics
from lake.capture.alarms import alarm
from lake.capture.errors import CaptureError, SlotLost
from lake.capture.postgres.changes import Changes, Commitment
from lake.capture.postgres.pgoutput import decode
from lake.capture.postgres.replication import Stream
from lake.capture.postgres.snapshots import Snapshots, progress_of
from lake.capture.postgres.source import Identity, Source, SourceTable
from lake.capture.postgres.state import State
from lake.capture.runner import DatabaseOptions, DatabaseSession, Runner

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
_LAG_SECONDS = 10.0  # between two looks at the slot and the publication
_IDLE_BYTES = 16 << 20  # log without changes of ours, after which the position is stored anyway


@dataclass(frozen=True, kw_only=True)
class Options(DatabaseOptions):
    """What is captured, and how. `publication` and `slot` are names in the source."""

    publication: str
    slot: str


class Capture(Runner[Options, State]):
    """The capture of a Postgres."""

    transient = (psycopg2.OperationalError, psycopg2.InterfaceError)

    def session(self, *, renew: bool) -> "_Session":
        return _Session(self, renew=renew)


class _Session(DatabaseSession[Options, State]):
    def __init__(self, capture: Capture, *, renew: bool) -> None:
        super().__init__(capture)
        options = self._options
        self._raw.create()
        self._source = Source(options.source)
        self._stream: Stream | None = None
        self._looked = 0.0
        self._acknowledged = 0
        self._end_mark: str | None = None
        self._has_looked_again = False
        self._idle_mark: str | None = None
        try:
            oid = self._source.check(options.publication)
            self.state = self._prepared(renew=renew)
            self._check_publication(oid)
        except BaseException:
            self.close()
            raise
        self._written = self.state.copy()
        type_names = self._source.type_names
        self._changes = Changes(
            self.state, self._add, self._found, lambda columns: type_names([*columns]), options.untouched
        )
        self._changes.token = self._source.token()
        self._snapshots = Snapshots(
            self._source,
            self.state,
            self._changes,
            self._add,
            chunk_rows=options.chunk_rows,
            keep_alive=lambda: self._acknowledge(self._acknowledged),
        )

    def close(self) -> None:
        super().close()
        self._source.close()

    # --- before it begins -------------------------------------------------------------------------------------

    def _prepared(self, *, renew: bool) -> State:
        """The state to go on from; the slot is there afterwards. Raises CaptureError."""
        options = self._options
        # In this order: another capture that goes on meanwhile must not look like a lost slot or another source.
        slot = self._source.slot(options.slot)
        known = None if renew else self._raw.latest(State.parse)
        identity = self._source.identity()
        if known is None:
            state = self._new_epoch(identity) if renew else None
            if slot is not None and renew:
                self._source.drop_slot(options.slot)
            if slot is None or renew:
                self._make_slot()
            return state or State(
                options.slot, options.publication, identity.system, identity.timeline, identity.database
            )
        if (known.slot, known.publication) != (options.slot, options.publication):
            raise CaptureError(
                f"{options.into} is captured by the slot {known.slot} from the publication {known.publication}, not"
                f" {options.slot} and {options.publication}: give these, or another table"
            )
        if (known.system, known.database) != (identity.system, identity.database):
            raise CaptureError(f"{options.into} has the changes of another database: give another table with --into")
        if known.timeline != identity.timeline or known.lsn > identity.lsn:
            raise SlotLost(
                "a standby or a backup has taken the place of the source, whose log needn't have all that was captured:"
                " start again with --new-snapshot"
            )
        if slot is None and not known.lsn:
            self._make_slot()  # a run ended between its first instant and this
        elif slot is None:
            raise SlotLost(f"the source has no slot {options.slot} any more: start again with --new-snapshot")
        elif known.lsn and slot.confirmed_lsn > known.lsn:
            raise SlotLost(
                f"the slot {options.slot} was made anew, or read by another program: changes are missing; start again"
                " with --new-snapshot"
            )
        return known

    def _check_publication(self, oid: int) -> None:
        """While there is no publication, Postgres 18 sends no changes, and doesn't say so. Raises SlotLost."""
        if self.state.publication_oid not in (0, oid):
            raise SlotLost(
                f"the publication {self._options.publication} was dropped and made anew: changes in between are"
                " missing; start again with --new-snapshot"
            )
        self.state.publication_oid = oid

    def _make_slot(self) -> None:
        self._source.create_slot(self._options.slot)
        if self._source.retention_limit() < 0:
            logger.warning(
                "the source keeps log for the slot without limit, and a capture that stands still fills its disk: set"
                " max_slot_wal_keep_size there"
            )

    def _new_epoch(self, identity: Identity) -> State:
        """Writes down that all tables are read again, before the old slot is dropped."""
        options = self._options
        before = self._raw.latest(State.parse, even_undone=True)
        state = State(options.slot, options.publication, identity.system, identity.timeline, identity.database)
        if before is None:
            return state
        state.epoch, state.batch = before.epoch + 1, before.batch + 1
        published = {each.name: progress_of(each) for each in self._source.tables(options.publication)}
        return self._begin_epoch(state, before.tables, published, transaction_id=0)

    def _found(self, oid: int) -> SourceTable | None:
        """A published table as it is now."""
        return next(iter(self._source.tables(self._options.publication, oid)), None)

    # --- the stream -------------------------------------------------------------------------------------------

    def run(self, *, once: bool) -> None:
        self._snapshots.find_tables()
        self._snapshots.order(self._ordered())
        with self._source.stream(self._options.slot, self._options.publication) as stream:
            self._stream = stream
            self._capture.pause("streaming")
            while not self._is_over(once=once):
                message = stream.read()
                if message is None:
                    self._idle(stream)
                    continue
                commitment = self._changes.take(decode(message))
                if commitment is not None:
                    self._ended(commitment)
            self._commit()
            self._acknowledge(self._safe_lsn())

    def _is_over(self, *, once: bool) -> bool:
        if self._changes.is_open:
            return False
        if self._capture.is_stopping:
            return True
        if once and self._end_mark is None and self.state.is_snapshot_done and not self._snapshots.is_pending:
            self._end_mark = uuid.uuid4().hex
            self._source.mark(self._end_mark)
        return self._end_mark == ""

    def _ended(self, commitment: Commitment) -> None:
        """A transaction has come to its end."""
        if commitment.is_new:
            self.state.lsn = commitment.end_lsn
            self._last_commit_time = commitment.begin.commit_time
        if commitment.marks:
            if self._snapshots.land(commitment):
                self._capture.pause("chunk")
            if self._end_mark in commitment.marks:
                # What a snapshot has missed meanwhile is read first, and what no row of the log has told.
                if not self._has_looked_again:
                    self._has_looked_again = True
                    self._snapshots.find_tables()
                is_done = self.state.is_snapshot_done and not self._snapshots.is_pending
                self._end_mark = "" if is_done else None
            if self._idle_mark in commitment.marks:
                self._idle_mark = None
                self._commit(even_without_rows=True)
        self._snapshots.advance()
        if self._is_due:
            self._commit()
        if time.monotonic() - self._looked > _LAG_SECONDS:
            self._look()

    def _idle(self, stream: Stream) -> None:
        """Nothing has come: does what is due, and waits."""
        now = time.monotonic()
        if not self._changes.is_open:
            self._snapshots.advance()
            if now - self._looked > _LAG_SECONDS or stream.is_asked:
                # A source that shuts down asks, and waits for the stream to end. It answers no queries any more.
                stream.is_asked = False
                self._look()
            if self._batch is not None and now >= self._batch_due:
                self._commit()
            elif self._idle_mark is None and stream.end_lsn - self._written.lsn > _IDLE_BYTES:
                self._idle_mark = uuid.uuid4().hex
                self._source.mark(self._idle_mark)
            elif self._acknowledged < self._written.lsn and not self._snapshots.is_pending:
                self._forget_seen()
                self._acknowledge(self._safe_lsn())
        stream.wait(_TICK_SECONDS)

    # --- batches ----------------------------------------------------------------------------------------------

    def _completed(self) -> None:
        super()._completed()
        if not self._snapshots.is_pending:
            self._forget_seen()
        self._acknowledge(self._safe_lsn())
        self._capture.pause("acknowledged")

    def _forget_seen(self) -> None:
        if self._changes.recent:
            self._changes.forget_seen(self._source.seen_now())

    def _safe_lsn(self) -> int:
        """What a new stream needn't bring again: it is written, and later queries see it."""
        recent = [each.begin.commit_lsn for each in self._changes.recent]
        return min([self._written.lsn, *recent])

    def _acknowledge(self, lsn: int) -> None:
        assert self._stream is not None
        self._acknowledged = max(self._acknowledged, lsn)
        self._stream.acknowledge(self._acknowledged)

    def _look(self) -> None:
        """Looks at the lag of the slot, and for new tables. Raises CaptureError if the publication is gone."""
        self._looked = time.monotonic()
        self._check_publication(self._source.check(self._options.publication))
        self._changes.token = self._source.token()
        self._snapshots.find_tables()
        self._snapshots.order(self._ordered())
        if self._batch is None and self.state.is_snapshot_done:
            self._commit()  # what has been found out about the tables
        slot = self._source.slot(self._options.slot)
        if slot is None:
            return
        metrics.LAG_BYTES.set(slot.behind)
        metrics.RETAINED_BYTES.set(slot.retained)
        if slot.retained > self._options.alarm_bytes or slot.status in ("unreserved", "lost"):
            alarm("slot lag", slot=self._options.slot, status=slot.status, bytes=slot.retained)
