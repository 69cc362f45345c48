"""Who makes the partitions of a table ready, its property `partition.commit.mode`; the name that shows the others."""

from enum import StrEnum

COMMIT_MODE = "partition.commit.mode"

UNCOMMITTED_NAME = "@includeuncommit"
"""The end of decorated names: `t@includeuncommit` is table `t` with its uncommitted partitions, read-only."""


class CommitMode(StrEnum):
    """Who makes a table's partitions ready."""

    NONE = "none"  # they are born ready
    MANUAL = "manual"  # whoever commits them
    EVENT_TIME = "event-time"  # the server, as the watermark passes them
    PROCESS_TIME = "process-time"  # the server, some time after their creation
