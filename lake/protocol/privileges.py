"""The privileges that may be granted, by their names."""

from enum import IntFlag


class Privilege(IntFlag):
    """What may be granted, by the names that grants have. Those from READ_UNCOMMITTED on are not Hive's."""

    SELECT = 1
    INSERT = 2
    UPDATE = 4
    DELETE = 8
    CREATE = 16
    ALTER = 32
    DROP = 64
    INDEX = 128
    LOCK = 256
    SHOW_DATABASE = 512
    READ_UNCOMMITTED = 1024
    COMMIT = 2048
    TIMELINE = 4096
    TABLE_SERVICE = 8192
    ROLLBACK = 16384
    CLEAN = 32768
    SUBSCRIBE = 65536
    LOCATION = 131072


ALL = ~Privilege(0)
"""The privilege `ALL`, and what owners have."""

_BY_NAME: dict[str, Privilege] = {"ALL": ALL, **{str(each.name): each for each in Privilege}}


def privilege_of(text: str) -> Privilege:
    """The privilege of a stored name, whatever its case; none for a name that has no meaning here."""
    return _BY_NAME.get(text.strip().upper().replace(" ", "_"), Privilege(0))
