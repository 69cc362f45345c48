"""What a statement of the log does to captured tables.

The log has the text of each DDL statement, and the rows of everything else. A DDL statement changes rows without a row
in the log. So a statement that names a table has that table read again, unless it is known to leave rows and columns
alone. Names are found wherever they are in the text: too many are found rather than too few.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True)
class Emptied:
    """A table was truncated."""

    table: str


@dataclass(frozen=True)
class Gone:
    """Tables were dropped, renamed or replaced. A table that gets one of these names later is another one.

    A name that ends with a point stands for all tables of a database.
    """

    tables: tuple[str, ...]


@dataclass(frozen=True)
class Altered:
    """Rows or columns of these tables may be others now. Most of the names are no tables' at all.

    `of_partitions`: rows came or went with partitions, and all else stayed.
    """

    tables: tuple[str, ...]
    of_partitions: bool = False


@dataclass(frozen=True)
class Widened:
    """A table got columns behind its last one, which are NULL in the rows that were there."""

    table: str


@dataclass(frozen=True)
class Written:
    """A statement that wrote rows, none of which is in the log. `schema`: the session's database."""

    tables: tuple[str, ...]
    schema: str


@dataclass(frozen=True)
class Linked:
    """A table got foreign keys. `cascades`: whether its rows may change by them."""

    table: str
    cascades: bool


@dataclass(frozen=True)
class Unlinked:
    """A table may have lost a foreign key."""

    table: str


@dataclass(frozen=True)
class Stated:
    """The text of a statement, whose effects precede it. `renamed`: as of `renamed_columns`."""

    text: str
    renamed: Mapping[str, Mapping[str, str | None]]


Effect: TypeAlias = Emptied | Gone | Altered | Widened | Written | Linked | Unlinked

_ANSI_QUOTES = 4  # of sql_mode
_NO_BACKSLASH_ESCAPES = 1 << 20


def effects_of(text: str, schema: str, sql_mode: int = 0) -> list[Effect]:
    """What a statement does. `schema`: the session's database; `sql_mode` as a number, which says what quotes are.

    A server runs what is in `/*!50701 … */` or `/*M!100301 … */` if its version is high enough. So the effects with and
    without it are returned.
    """
    found: dict[Effect, None] = {}
    for runs_comments in (True, False):
        tokens = _without_set_statement(_tokens(text, sql_mode, runs_comments=runs_comments))
        found |= dict.fromkeys(_Statement(tokens, schema).effects())
        if "!" not in text:
            break
    return list(found)


def renamed_columns(text: str, schema: str, sql_mode: int = 0) -> dict[str, dict[str, str | None]]:
    """The columns to which an ALTER TABLE gives other names, by the table and by their names before; None for those
    that it drops.

    Empty for all other statements.
    """
    tokens = _without_set_statement(_tokens(text, sql_mode, runs_comments=True))
    return _Statement(tokens, schema).renamed()


def first_words(text: str, sql_mode: int = 0) -> tuple[str, str]:
    """The first two words of a statement in upper case, without comments; empty where there are none."""
    tokens = _without_set_statement(_tokens(text, sql_mode, runs_comments=True))
    words = [each.word for each in tokens[:2]] + ["", ""]
    return words[0], words[1]


# --- words ----------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    """`kind`: `word`, `name` (quoted), `text` or `mark`. `text`: without quotes."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """A word in upper case; empty for anything else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")


def _lexer(text: str, comment: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<skip>\s+|(?:--(?=\s|$)|\#)[^\n]*|{comment}/\*.*?(?:\*/|$)|\*/)"
        r"|`(?P<ticks>(?:[^`]|``)*)`"
        rf"|'(?P<text>(?:{text}|''|[^'])*)'"
        rf'|"(?P<double>(?:{text}|""|[^"])*)"'
        r"|(?P<word>[\w$]+)"
        r"|(?P<mark>.)",
        re.DOTALL,
    )


# What is in an executed comment is part of the statement. MariaDB runs all of MySQL up to 5.6.
_EXECUTED = r"/\*M?!(?:(?:[0-4]\d{4}|50[0-6]\d\d)(?!\d)|(?!\d))|"
_PERHAPS_EXECUTED = r"/\*M?!\d{5,6}|"
_LEXERS = {
    (escapes, runs): _lexer(r"\\." if escapes else r"(?!)", _EXECUTED + (_PERHAPS_EXECUTED if runs else ""))
    for escapes in (True, False)
    for runs in (True, False)
}


def _tokens(text: str, sql_mode: int, *, runs_comments: bool) -> list[_Token]:
    lexer = _LEXERS[not sql_mode & _NO_BACKSLASH_ESCAPES, runs_comments]
    found = []
    for each in lexer.finditer(text):
        kind, value = each.lastgroup or "", each[0]
        if kind == "skip":
            continue
        if kind == "ticks":
            kind, value = "name", each["ticks"].replace("``", "`")
        elif kind == "double" and sql_mode & _ANSI_QUOTES:
            kind, value = "name", each["double"].replace('""', '"')
        elif kind in ("text", "double"):
            kind, value = "text", value[1:-1]
        found.append(_Token(kind, value))
    return found


def _without_set_statement(tokens: list[_Token]) -> list[_Token]:
    """The statement after `SET STATEMENT variable = value FOR`."""
    while [each.word for each in tokens[:2]] == ["SET", "STATEMENT"]:
        at = next((number for number, each in enumerate(tokens) if each.word == "FOR"), len(tokens))
        tokens = tokens[at + 1 :]
    return tokens


def _clauses(tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
    """What is between commas, but for those in parentheses."""
    depth, clause = 0, list[_Token]()
    for each in tokens:
        if each.kind == "mark":
            depth += (each.text == "(") - (each.text == ")")
            if each.text == "," and not depth:
                yield clause
                clause = []
                continue
        clause.append(each)
    yield clause


# --- statements -----------------------------------------------------------------------------------------------

_WRITES = frozenset(
    {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "SELECT", "DO", "CALL", "WITH", "VALUES", "EXECUTE"}
)
_HARMLESS = frozenset(
    {
        *("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA", "SET", "USE", "LOCK", "UNLOCK"),
        *("GRANT", "REVOKE", "OPTIMIZE", "FLUSH", "PURGE", "RESET", "KILL", "INSTALL", "UNINSTALL"),
    }
)
_OBJECTS = frozenset(
    {
        *("TABLE", "TABLES", "INDEX", "DATABASE", "SCHEMA", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT"),
        *("USER", "ROLE", "SEQUENCE", "SERVER", "PACKAGE"),
    }
)
"""What is created, altered or dropped; the first of these words in a statement says which."""

_TABLE_OPTIONS = frozenset(
    {
        *("COMMENT", "AUTO_INCREMENT", "ROW_FORMAT", "KEY_BLOCK_SIZE", "ALGORITHM", "LOCK", "AVG_ROW_LENGTH"),
        *("CHECKSUM", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "DELAY_KEY_WRITE", "PAGE_CHECKSUM", "PAGE_COMPRESSED"),
        *("PAGE_COMPRESSION_LEVEL", "ENCRYPTED", "ENCRYPTION_KEY_ID", "TRANSACTIONAL", "STATS_PERSISTENT"),
        *("STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES"),
    }
)
_MOVES = frozenset({"EXCHANGE", "DROP", "TRUNCATE"})
"""What is done to partitions with their rows."""

_TYPES = frozenset(
    {
        *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "BOOL", "BOOLEAN", "DECIMAL", "NUMERIC"),
        *("FLOAT", "DOUBLE", "BIT", "DATE", "DATETIME", "TIME", "YEAR", "CHAR", "VARCHAR", "BINARY", "VARBINARY"),
        *("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON", "ENUM"),
        *("SET", "UUID", "INET4", "INET6"),
    }
)
"""Types of columns that may be NULL if nothing else is said. TIMESTAMP is NOT NULL with an old setting."""


class _Statement:
    def __init__(self, tokens: list[_Token], schema: str) -> None:
        self._tokens = tokens
        self._schema = schema
        self._at = 0

    def effects(self) -> Iterator[Effect]:
        first = self._next_word()
        if first in _HARMLESS or not self._tokens:
            return
        if first in _WRITES or self._tokens[0].text == "(":
            yield Written(self._names(), self._schema)
        elif first == "TRUNCATE":
            self._skip("TABLE")
            yield Emptied(self._table())
        elif first == "ANALYZE":
            self._skip("NO_WRITE_TO_BINLOG", "LOCAL")
            if self._peek() not in ("TABLE", "TABLES"):
                yield Written(self._names(), self._schema)
        elif first in ("CREATE", "ALTER", "DROP", "RENAME"):
            before = [first]
            while self._at < len(self._tokens) and before[-1] not in _OBJECTS:
                before.append(self._next_word())
            kind = before.pop()
            if kind in ("TABLE", "TABLES"):
                yield from self._of_tables(first, before)
            elif kind in ("DATABASE", "SCHEMA") and (first == "DROP" or "REPLACE" in before):
                self._skip("IF", "EXISTS")
                yield Gone((f"{self._text()}.",))
            elif kind == "INDEX" and first == "DROP":
                self._skip("IF", "EXISTS")
                if self._text().upper() == "PRIMARY":
                    yield Altered(self._names())
            elif kind not in _OBJECTS:
                yield Altered(self._names())
        else:
            yield Altered(self._names())

    def _of_tables(self, first: str, before: list[str]) -> Iterator[Effect]:
        """A statement that creates, alters, drops or renames tables; `before`: the words before TABLE."""
        if "TEMPORARY" in before:
            return
        self._skip("IF", "NOT", "EXISTS")
        words = {each.word for each in self._tokens}
        if first in ("CREATE", "ALTER") and "REFERENCES" in words:
            at, table = self._at, self._table()
            self._at = at
            yield Linked(table, cascades=not words.isdisjoint(("CASCADE", "NULL", "DEFAULT")))
        if first == "DROP":
            yield Gone(tuple(self._tables()))
        elif first == "RENAME":
            yield Gone(tuple(self._tables("TO")))
        elif first == "CREATE":
            if "REPLACE" in before:
                yield Gone((self._table(),))
        else:
            yield from self._altered(ignores="IGNORE" in before)

    def _altered(self, *, ignores: bool) -> Iterator[Effect]:
        table = self._table()
        self._skip_wait()
        for clause in _clauses(self._tokens[self._at :]):
            words = [each.word for each in clause]
            if words[:1] == ["RENAME"] and words[1:2] not in (["COLUMN"], ["INDEX"], ["KEY"]):
                target = _Statement([each for each in clause[1:] if each.text != "="], self._schema)
                target._skip("TO", "AS")
                yield Gone((table, target._table()))
            elif words[:1] == ["DROP"] and words[1:2] in (["FOREIGN"], ["CONSTRAINT"]):
                yield Unlinked(table)
                if clause[-1].text.upper() == "PRIMARY":
                    yield Altered((table,))
            elif _adds_column(words, clause):
                yield Widened(table)
            elif ignores or not _keeps_rows(words, clause):
                is_moved = words[1:2] == ["PARTITION"] and words[0] in _MOVES
                yield Altered(self._names(), of_partitions=is_moved and not ignores)

    def renamed(self) -> dict[str, dict[str, str | None]]:
        """As of `renamed_columns`."""
        words = [each.word for each in self._tokens]
        if words[:1] != ["ALTER"] or "TABLE" not in words[:4]:
            return {}
        self._at = words.index("TABLE") + 1
        self._skip("IF", "NOT", "EXISTS")
        table = self._table()
        self._skip_wait()
        found = dict(filter(None, map(_renamed_in, _clauses(self._tokens[self._at :]))))
        return {table: found} if found else {}

    # --- names ------------------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self._tokens[self._at].word if self._at < len(self._tokens) else ""

    def _text(self) -> str:
        return self._tokens[self._at].text if self._at < len(self._tokens) else ""

    def _next_word(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1].word if self._at <= len(self._tokens) else ""

    def _skip(self, *words: str) -> None:
        for each in words:
            if self._peek() == each:
                self._at += 1

    def _skip_wait(self) -> None:
        if self._peek() == "NOWAIT":
            self._at += 1
        elif self._peek() == "WAIT":
            self._at += 2

    def _table(self) -> str:
        """The name of a table at the place that is reached, with its database's."""
        parts = []
        while self._at < len(self._tokens) and self._tokens[self._at].is_name:
            parts.append(self._tokens[self._at].text)
            self._at += 1
            if self._at >= len(self._tokens) or self._tokens[self._at].text != ".":
                break
            self._at += 1
        return ".".join(parts) if len(parts) > 1 else f"{self._schema}.{''.join(parts)}"

    def _tables(self, separator: str = "") -> Iterator[str]:
        """The names of a list, between which are commas or a word."""
        while self._at < len(self._tokens):
            yield self._table()
            self._skip_wait()
            if self._at < len(self._tokens) and (self._tokens[self._at].text == "," or self._peek() == separator):
                self._at += 1
            else:
                return

    def _names(self) -> tuple[str, ...]:
        """All that may be names of tables, with their databases'."""
        found: dict[str, None] = {}
        for number, each in enumerate(self._tokens):
            if each.is_name:
                found[f"{self._schema}.{each.text}"] = None
                if [after.text for after in self._tokens[number + 1 : number + 2]] == ["."]:
                    found |= {f"{each.text}.{name.text}": None for name in self._tokens[number + 2 : number + 3]}
        return tuple(found)


def _adds_column(words: list[str], clause: list[_Token]) -> bool:
    """Whether a clause of ALTER TABLE adds a column at the end that is NULL in all rows that are there."""
    if words[:1] != ["ADD"]:
        return False
    rest = clause[2:] if words[1:2] == ["COLUMN"] else clause[1:]
    if [each.word for each in rest[:3]] == ["IF", "NOT", "EXISTS"]:
        rest = rest[3:]
    if len(rest) < 2 or not rest[0].is_name or rest[1].word not in _TYPES:
        return False
    if rest[0].kind == "word" and rest[0].word in ("INDEX", "KEY", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        return False
    rest = rest[2:]
    if rest and rest[0].text == "(":
        end = next((number for number, each in enumerate(rest) if each.text == ")"), len(rest))
        rest = rest[end + 1 :]
    text = " ".join("''" if each.kind == "text" else each.word or "name" for each in rest)
    return _PLAIN_COLUMN.fullmatch(text) is not None


def _renamed_in(clause: list[_Token]) -> tuple[str, str | None] | None:
    """The names of a column before and after a clause of ALTER TABLE that gives it another one, or drops it."""
    words = [each.word for each in clause]
    if words[:1] == ["DROP"]:
        return _dropped_in(clause, words)
    if words[:2] == ["RENAME", "COLUMN"]:
        rest, between = clause[2:], 1
    elif words[:1] == ["CHANGE"]:
        rest, between = clause[2 if words[1:2] == ["COLUMN"] else 1 :], 0
    else:
        return None
    if [each.word for each in rest[:2]] == ["IF", "EXISTS"]:
        rest = rest[2:]
    names = [each.text for each in (rest[:1] + rest[1 + between : 2 + between]) if each.is_name]
    return (names[0], names[1]) if len(names) == 2 and names[0] != names[1] else None


def _dropped_in(clause: list[_Token], words: list[str]) -> tuple[str, None] | None:
    """As of `_renamed_in`, of a clause that drops something."""
    if words[1:2] == ["COLUMN"]:
        rest = clause[2:]
    elif words[1:2] and words[1] in _DROPPED:
        return None
    else:
        rest = clause[1:]
    if [each.word for each in rest[:2]] == ["IF", "EXISTS"]:
        rest = rest[2:]
    return (rest[0].text, None) if rest and rest[0].is_name else None


_DROPPED = frozenset({"INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "SYSTEM", "PERIOD"})
"""What a clause drops that has one of these words behind DROP, rather than a column."""

_PLAIN_COLUMN = re.compile(
    r"(?:UNSIGNED|SIGNED|ZEROFILL|DEFAULT NULL|NULL|COMMENT ''|(?:CHARSET|CHARACTER SET|COLLATE) (?:\w+|'')| )*"
)


def _keeps_rows(words: list[str], clause: list[_Token]) -> bool:
    """Whether a clause of ALTER TABLE is known to leave the table's rows, columns and primary key alone."""
    match words[:3]:
        case ["ADD", "CONSTRAINT", *_]:
            return "PRIMARY" not in words
        case ["ADD", "INDEX" | "KEY" | "UNIQUE" | "FULLTEXT" | "SPATIAL" | "CHECK" | "FOREIGN" | "PARTITION", *_]:
            return True
        case ["DROP" | "RENAME", "INDEX" | "KEY", *_]:
            return all(each.text.upper() != "PRIMARY" for each in clause)
        case ["ALTER", "INDEX" | "KEY", *_]:
            return True
        case ["ALTER", *_]:
            return words[-2:] == ["DROP", "DEFAULT"] or "SET DEFAULT" in " ".join(words)
        case ["PARTITION", "BY", *_] | ["REMOVE", "PARTITIONING"]:
            return True
        case ["REORGANIZE" | "COALESCE" | "REBUILD" | "OPTIMIZE" | "ANALYZE" | "CHECK", "PARTITION", *_]:
            return True
        case ["FORCE"] | ["ENABLE" | "DISABLE", "KEYS"]:
            return True
    plain = [each for each in clause if each.text != "="]
    named = [each.word for each in plain[::2]]
    if not clause or len(plain) % 2:
        return False
    return all(
        each in _TABLE_OPTIONS or (each == "ENGINE" and value.text.upper() == "INNODB")
        for each, value in zip(named, plain[1::2], strict=True)
    )
