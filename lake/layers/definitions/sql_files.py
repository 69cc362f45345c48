"""Reads definitions from files of Spark's SQL.

The beginnings of statements are read token by token, since sqlglot doesn't know them; the queries in them stay text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lake.layers.definitions.model import (
    CAPTURED_PROPERTIES,
    AppendFlow,
    AutoCdcFlow,
    CapturedTable,
    Definitions,
    Expectation,
    StreamingTable,
    View,
    Violation,
)
from lake.layers.errors import BadDefinition, Place


def read(path: Path, shown: Path, into: Definitions) -> None:
    """Adds what a file defines. `shown` is its path for messages. Raises BadDefinition."""
    _read(path.read_text(encoding="utf-8"), shown, into)


def read_text(text: str, place: Place, into: Definitions) -> None:
    """Adds what a text defines that is there in place of a statement. Raises BadDefinition."""
    _read(text, place.file, into, place)


def _read(text: str, shown: Path, into: Definitions, place: Place | None = None) -> None:
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError as error:
        where = place or Place(shown, 1)
        raise BadDefinition(where, f"it can't be read as SQL: {str(error).splitlines()[0]}") from None
    statement: list[Token] = []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            statement.append(token)
        elif statement:
            _Statement(text, shown, statement, place).define(into)
            statement = []


@dataclass(frozen=True)
class _Clauses:
    """What stands between a table's name and its query."""

    comment: str | None
    properties: dict[str, str]
    partitions: tuple[str, ...]
    expectations: tuple[Expectation, ...]


class _Statement:
    """One statement, and how far it has been read."""

    def __init__(self, text: str, file: Path, tokens: Sequence[Token], stands_at: Place | None = None) -> None:
        self._text = text
        self._file = file
        self._stands_at = stands_at
        self._tokens = tokens
        self._next = 0

    def define(self, into: Definitions) -> None:
        """Adds what the statement defines."""
        place = self._place()
        if not self._take("CREATE"):
            self._refuse("expected CREATE MATERIALIZED VIEW, TEMPORARY VIEW, STREAMING TABLE, CAPTURED TABLE or FLOW")
        if self._take("OR"):
            self._expect("REFRESH")
        if self._take("MATERIALIZED", "VIEW"):
            name, clauses = self._name_and_clauses()
            query = self._query()
            into.views.append(
                View(
                    name,
                    query,
                    place,
                    comment=clauses.comment,
                    properties=clauses.properties,
                    partitions=clauses.partitions,
                    expectations=clauses.expectations,
                )
            )
        elif self._take("TEMPORARY", "VIEW") or self._take("TEMP", "VIEW"):
            name = self._name()
            into.views.append(View(name, self._query(), place, is_temporary=True))
        elif self._take("STREAMING", "TABLE"):
            name, clauses = self._name_and_clauses()
            into.streaming_tables.append(
                StreamingTable(
                    name, place, clauses.comment, clauses.properties, clauses.partitions, clauses.expectations
                )
            )
            if not self._at_end():
                into.flows.append(AppendFlow(name, name, self._query(), place))
        elif self._take("CAPTURED", "TABLE"):
            into.captured.append(self._captured(place))
        elif self._take("FLOW"):
            into.flows.append(self._flow(place))
        else:
            self._refuse("expected MATERIALIZED VIEW, TEMPORARY VIEW, STREAMING TABLE, CAPTURED TABLE or FLOW")

    def _captured(self, place: Place) -> CapturedTable:
        name = self._name()
        self._expect("FROM")
        raw = self._name()
        if raw.count(".") != 1:
            self._refuse(f"{raw} is no name of a raw table: it is DATABASE.TABLE")
        self._expect("TABLE")
        table = self._string()
        policy: str | None = None
        quarantines = False
        properties: dict[str, str] = {}
        while not self._at_end():
            if self._take("POLICY"):
                policy = self._string()
                if Path(policy).is_absolute() or ".." in Path(policy).parts:
                    self._refuse("expected a file within the project")
            elif self._take("MISFITS", "QUARANTINE"):
                quarantines = True
            elif self._take("TBLPROPERTIES"):
                properties = self._properties()
                if unknown := [each for each in properties if each not in CAPTURED_PROPERTIES]:
                    self._refuse(f"a captured table has no property {unknown[0]}: {', '.join(CAPTURED_PROPERTIES)}")
            else:
                self._refuse("expected POLICY 'schema-changes.yml', MISFITS QUARANTINE or TBLPROPERTIES (…)")
        return CapturedTable(name, raw, table, place, policy, quarantines, properties)

    def _name_and_clauses(self) -> tuple[str, _Clauses]:
        if self._take("IF"):
            self._expect("NOT")
            self._expect("EXISTS")
        name = self._name()
        comment: str | None = None
        properties: dict[str, str] = {}
        partitions: tuple[str, ...] = ()
        expectations = self._expectations() if self._peek() == "(" else ()
        while not self._at_end() and self._peek() != "AS":
            if self._take("COMMENT"):
                comment = self._string()
            elif self._take("TBLPROPERTIES"):
                properties = self._properties()
            elif self._take("PARTITIONED", "BY"):
                partitions = self._names()
            elif self._take("USING"):
                if self._word().lower() != "parquet":
                    self._refuse("layers are stored as Parquet: leave USING out")
            else:
                self._refuse(f"{self._peek()} isn't supported here")
        return name, _Clauses(comment, properties, partitions, expectations)

    def _expectations(self) -> tuple[Expectation, ...]:
        found = []
        self._expect("(")
        while True:
            if not self._take("CONSTRAINT"):
                self._refuse("columns have the types of the query: only CONSTRAINT … EXPECT (…) can stand here")
            name = self._word()
            self._expect("EXPECT")
            condition = self._brackets()
            violation = Violation.KEEP
            if self._take("ON", "VIOLATION"):
                if self._take("DROP", "ROW"):
                    violation = Violation.DROP
                elif self._take("FAIL", "UPDATE"):
                    violation = Violation.FAIL
                elif self._take("HOLD", "PARTITION"):
                    violation = Violation.HOLD
                elif self._take("QUARANTINE", "ROW"):
                    violation = Violation.QUARANTINE
                else:
                    self._refuse("expected ON VIOLATION DROP ROW, FAIL UPDATE, HOLD PARTITION or QUARANTINE ROW")
            found.append(Expectation(name, condition, violation))
            if self._take(")"):
                return tuple(found)
            self._expect(",")

    def _flow(self, place: Place) -> AutoCdcFlow | AppendFlow:
        name = self._name()
        if self._take("COMMENT"):
            self._string()
        if self._take("AS", "INSERT", "INTO"):
            return self._append_flow(name, place)
        if not self._take("AS", "AUTO", "CDC", "INTO"):
            self._refuse("expected AS INSERT INTO, or AS AUTO CDC INTO")
        return self._auto_cdc_flow(name, place)

    def _append_flow(self, name: str, place: Place) -> AppendFlow:
        target = self._name()
        if not self._take("BY", "NAME"):
            self._refuse("expected BY NAME: the columns of flows are matched by their names")
        if self._at_end():
            self._refuse("expected a query after BY NAME")
        return AppendFlow(name, target, self._rest(len(self._tokens)), place)

    def _auto_cdc_flow(self, name: str, place: Place) -> AutoCdcFlow:
        target = self._name()
        self._expect("FROM")
        if self._take("STREAM"):
            in_brackets = self._take("(")
            source = self._name()
            if in_brackets:
                self._expect(")")
        else:
            source = self._name()
        self._expect("KEYS")
        keys = self._names()
        deletes: str | None = None
        sequence: str | None = None
        columns: tuple[str, ...] | None = None
        without: tuple[str, ...] = ()
        scd = 1
        while not self._at_end():
            if self._take("APPLY", "AS", "DELETE", "WHEN"):
                deletes = self._until("SEQUENCE", "COLUMNS", "STORED")
            elif self._take("SEQUENCE", "BY"):
                sequence = self._until("COLUMNS", "STORED", "APPLY")
            elif self._take("COLUMNS", "*", "EXCEPT"):
                without = self._names()
            elif self._take("COLUMNS"):
                columns = self._names()
            elif self._take("STORED", "AS", "SCD", "TYPE"):
                scd = self._scd_type()
            else:
                self._refuse(f"{self._peek()} of AUTO CDC isn't supported")
        if sequence is None:
            self._refuse("SEQUENCE BY is missing: it says which change of a key is the later one")
        return AutoCdcFlow(name, target, source, keys, sequence, place, deletes, columns, without, scd)

    # --- tokens -----------------------------------------------------------------------------------------------

    def _scd_type(self) -> int:
        text = self._word()
        if text not in ("1", "2"):
            self._refuse("expected STORED AS SCD TYPE 1 or 2")
        return int(text)

    def _query(self) -> str:
        self._expect("AS")
        if self._at_end():
            self._refuse("expected a query after AS")
        return self._rest(len(self._tokens))

    def _until(self, *words: str) -> str:
        """The text up to one of some words outside of brackets."""
        depth, end = 0, self._next
        while end < len(self._tokens):
            if depth == 0 and self._tokens[end].text.upper() in words:
                break
            depth += _step(self._tokens[end])
            end += 1
        if end == self._next:
            self._refuse("expected an expression")
        return self._rest(end)

    def _brackets(self) -> str:
        """The text within brackets."""
        self._expect("(")
        depth, end = 1, self._next
        while end < len(self._tokens):
            depth += _step(self._tokens[end])
            if depth == 0:
                break
            end += 1
        found = self._rest(end)
        self._expect(")")
        return found

    def _rest(self, end: int) -> str:
        first, last = self._tokens[self._next], self._tokens[end - 1]
        self._next = end
        return self._text[first.start : last.end + 1]

    def _name(self) -> str:
        parts = [self._word()]
        while self._take("."):
            parts.append(self._word())
        return ".".join(parts)

    def _names(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._word().lower()]
        while self._take(","):
            found.append(self._word().lower())
        self._expect(")")
        return tuple(found)

    def _properties(self) -> dict[str, str]:
        found = {}
        self._expect("(")
        while True:
            key = self._string() if self._is_string() else self._name()
            self._expect("=")
            found[key] = self._string() if self._is_string() else self._word()
            if self._take(")"):
                return found
            self._expect(",")

    def _is_string(self) -> bool:
        return not self._at_end() and self._tokens[self._next].token_type is TokenType.STRING

    def _string(self) -> str:
        if not self._is_string():
            self._refuse("expected a text in quotation marks")
        self._next += 1
        return self._tokens[self._next - 1].text

    def _word(self) -> str:
        if self._at_end() or self._peek() in {"(", ")", ",", ";", "="} or self._is_string():
            self._refuse("expected a name")
        self._next += 1
        return self._tokens[self._next - 1].text

    def _take(self, *words: str) -> bool:
        """Whether some words come next; they are read then. sqlglot's tokens may be of several words."""
        texts: list[str] = []
        end = self._next
        while end < len(self._tokens) and len(texts) < len(words):
            texts += self._tokens[end].text.upper().split()
            end += 1
        if texts != [*words]:
            return False
        self._next = end
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._refuse(f"expected {word}")

    def _peek(self) -> str:
        return "" if self._at_end() else self._tokens[self._next].text.upper()

    def _at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def _place(self) -> Place:
        if self._stands_at is not None:
            return self._stands_at
        token = self._tokens[min(self._next, len(self._tokens) - 1)]
        return Place(self._file, token.line)

    def _refuse(self, reason: str) -> NoReturn:
        found = f", found {self._tokens[self._next].text!r}" if not self._at_end() else ", found the statement's end"
        raise BadDefinition(self._place(), reason + (found if reason.startswith("expected") else ""))


def _step(token: Token) -> int:
    """How much deeper a token goes into brackets."""
    return {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
