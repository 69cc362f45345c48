"""Validates the table parameter `transactional`, by the rules of Hive's TransactionalValidationListener.

The file format isn't checked: versions of Hive disagree about which formats are ACID.
"""

from collections.abc import Mapping

from lake.protocol.hive import MetaException

NAME = "transactional"


def settle_new(parameters: dict[str, str], *, external: bool) -> None:
    """Brings the parameter of a new table into its form: `true`, or none. Raises MetaException for another value."""
    value = _taken(parameters)
    if value is None or value.lower() == "false":
        return
    if value.lower() != "true":
        raise MetaException("'transactional' property of TBLPROPERTIES may only have value 'true'")
    if external:
        raise MetaException("an external table cannot be declared transactional")
    parameters[NAME] = "true"


def settle_changed(old: Mapping[str, str], parameters: dict[str, str], *, external: bool) -> None:
    """The parameter of an altered table is as it was, or becomes `true`. Raises MetaException otherwise."""
    before, value = _taken(dict(old)), _taken(parameters)
    if value is not None:
        parameters[NAME] = value
    if value is not None and value.lower() == "true":
        if external:
            raise MetaException("an external table cannot be declared transactional")
    elif (before and before.lower()) != (value and value.lower()):
        raise MetaException("TBLPROPERTIES with 'transactional'='true' cannot be unset")


def _taken(parameters: dict[str, str]) -> str | None:
    """The parameter, in whatever case its name is; it is taken out."""
    values = [parameters.pop(name) for name in list(parameters) if name.lower() == NAME]
    return values[-1] if values else None
