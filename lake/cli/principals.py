"""Users, groups and roles, as they are written on the command line: `user:alice`, `group:ops`, `role:analysts`."""

from lake.protocol.errors import UsageError

_KINDS = {"user": 1, "role": 2, "group": 3}
"""The numbers of Thrift's PrincipalType."""


def principal_named(text: str) -> tuple[str, int]:
    """A principal's name and Thrift's number of its kind. Raises UsageError."""
    kind, _, name = text.partition(":")
    if kind not in _KINDS or not name:
        raise UsageError(f"{text!r} is no principal: expected user:NAME, group:NAME or role:NAME")
    return name, _KINDS[kind]


def shown_principal(name: str | None, number: int | None) -> str:
    """A principal as it is written."""
    kind = next((kind for kind, each in _KINDS.items() if each == number), "?")
    return f"{kind}:{name}"
