"""Which columns a source's table has, as the `schema` rows of a raw table say it, and what may follow what.

Rows of a raw table are read by the columns of the latest `schema` row before them. Only nullable columns may be added
at the end: older rows have NULL there, as the source has. After any other change the rows before it don't tell what the
source has now. Then the table is read again, or a `hold` row says that it can't be.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

READ_AGAIN = "the table is read again: what it had before counts until that is complete"
"""`after` of the `truncate` row with which a table begins to be read again. A `complete` row says that it is done."""

EMPTIED = "all rows were removed while the table is read again: what it had before counts until that is complete"
"""`after` of a `truncate` row of the source's own, while the table is read again."""

WHOLE_ORDINAL = -1
"""The place of a `truncate` row before rows that are read as a whole: nothing was emptied at the source."""

MAX_STATEMENT = 64 << 10
"""Characters of a statement that are kept."""

INCOMPLETE = "rows are read again of which the log doesn't bring all values"
"""`after` of an `incomplete` row. The rows after it count once a `complete` row says that nothing is missing."""


@dataclass(frozen=True)
class DescribedColumn:
    """A column of a source's table.

    `type`: Spark's. `source_type`: as the source writes it. `in_key`: part of the key that identifies rows. `large`:
    updates may leave its value out. `values_of`: names the type for comparison, where two types of the source hold the
    same values; by default `source_type`. `number`: the source's own for the column, which no other of the table ever
    gets; `table`: the source's own for the table, which one that is made again doesn't get. `fill`: an object with the
    value that rows have which were written before the column came, as JSON. None if they aren't known. They aren't
    compared.
    """

    name: str
    type: str
    source_type: str
    in_key: bool
    large: bool
    values_of: str | None = None
    number: int | None = None
    table: int | None = None
    fill: str | None = None


@dataclass(frozen=True)
class Schema:
    """The columns of a table. `text`: of a `schema` row. `forms`: a fingerprint of the first column, of the first two,
    and so on."""

    text: str
    forms: tuple[str, ...]

    @property
    def form(self) -> str:
        """The fingerprint of all columns."""
        return self.forms[-1] if self.forms else _form("", "")

    def continues(self, form: str) -> bool:
        """Whether the columns are those of a fingerprint, and perhaps others after them."""
        return form == self.form or form in self.forms

    def follows(self, shape: str) -> bool:
        """Whether rows of a widened shape may be followed by rows with these columns."""
        return shape.startswith(_WIDENED) and self.continues(unwidened(shape))


def mark_of(form: str) -> str:
    """What the text of a `schema` row has in it if its columns are those of a fingerprint, and perhaps others after
    them."""
    return json.dumps({"form": form})[1:-1]


_WIDENED = "+"


def widened(form: str) -> str:
    """The shape of a table to which a statement has added columns that no row has brought yet."""
    return _WIDENED + unwidened(form)


def unwidened(shape: str) -> str:
    """The fingerprint of the columns that a table's rows had."""
    return shape.removeprefix(_WIDENED)


def schema_of(columns: Iterable[DescribedColumn]) -> Schema:
    """The schema that some columns make, in their order."""
    described: list[dict[str, object]] = []
    forms: list[str] = []
    for each in columns:
        compared = [each.name, each.type, each.values_of or each.source_type, each.in_key, each.large]
        forms.append(_form(forms[-1] if forms else "", json.dumps(compared)))
        described.append(
            {
                "name": each.name,
                "type": each.type,
                "source_type": each.source_type,
                "key": each.in_key,
                "large": each.large,
                "form": forms[-1],
                **({} if each.number is None else {"number": each.number}),
                **({} if each.table is None else {"table": each.table}),
                **({} if each.fill is None else {"fill": each.fill}),
            }
        )
    return Schema(json.dumps(described, ensure_ascii=False), tuple(forms))


def _form(before: str, compared: str) -> str:
    return hashlib.sha256(f"{before} {compared}".encode()).hexdigest()[:16]


def text_of_statement(text: str, renamed: Mapping[str, str | None] | None = None, **more: object) -> str:
    """The text of a `statement` row: what the source ran that changed a table's definition.

    `renamed`: columns that got another name, by the one before, with None for those that were dropped; None if the text
    wasn't looked at. `more`: what else the source says of it.
    """
    kept = text[:MAX_STATEMENT]
    found = {"statement": kept, **({} if renamed is None else {"renamed": dict(renamed)}), **more}
    return json.dumps(found if kept == text else {**found, "is_cut": True}, ensure_ascii=False)
