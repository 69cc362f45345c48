"""What methods tell of uncommitted partitions, which readers see only if they ask for them."""

from enum import StrEnum


class Uncommitted(StrEnum):
    """What a method has to do with uncommitted partitions. The tests of visibility follow it."""

    HIDDEN = "hidden"
    """It leaves out those that the reader's scope hides. Each such method has a recipe in `tests/visibility`."""

    SELECTED = "selected"
    """It changes the partitions that a partial spec or an expression selects, without those that the scope hides."""

    NAMED = "named"
    """It changes what the caller names exactly, and answers with nothing else, or it changes the table as a whole."""

    LOAD_PATH = "load path"
    """The one lookup that hides nothing: load paths find the partition by it that they write to. Its answer says what
    the partition is."""

    NO_TABLE = "no table"
    """It is about other things than tables, or about a text that the caller gives."""

    TABLE = "table itself"
    """It answers with what the table itself is, whatever partitions it has."""

    TRANSACTIONS = "transactions"
    """It is about numbers, and names that somebody writes to."""

    COMPACTIONS = "compactions"
    """It is about names that somebody wants compacted. Callers that ask of which columns there are statistics are about
    to compact the partition that they name."""

    LOCKS = "locks"
    """It is about names that somebody locks. There need not be anything of such a name."""

    COUNTERS = "counters"
    """It counts ready partitions, for every caller."""

    STREAMING = "streaming"
    """A streaming writer asks it how many partitions are open."""

    TIMELINE = "timeline"
    """Writers and cleaners need to know which partitions an instant changed. Callers that read files ask for snapshots
    and changes instead."""

    HUDI = "hudi"
    """Hudi's writers use it for their tables' timelines, and importers bring Hudi's timelines along."""

    TABLE_SERVICES = "table services"
    """It counts a table's files and instants, or is about jobs. Compaction has to know of all partitions."""

    CLEANERS = "cleaners"
    """Callers that remove files have to know of all of them."""

    EVENT_LOG = "event log"
    """Our own log tells of every change, and of each partition whether it is ready."""

    NOTIFICATIONS = "notifications"
    """Hive's log is silent about uncommitted partitions. A test of its own reads all of it."""
