"""Random queries over the tables of `tests.lake.layers.tables`, of all constructs that increments are computed for."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """Something to select from: its text, and its columns by name, each `int` or `text`. `key` tells its rows apart."""

    text: str
    columns: Mapping[str, str]
    key: Sequence[str] = ()


TABLES = {
    "orders": Relation("orders", {"id": "int", "cust": "int", "amount": "int", "city": "text"}, ("id",)),
    "customers": Relation("customers", {"id": "int", "name": "text", "city": "text"}, ("id",)),
    "items": Relation("items", {"ord": "int", "nr": "int", "price": "int"}, ("ord", "nr")),
    "visits": Relation("visits", {"cust": "int", "city": "text"}),
}


class Queries:
    """Makes queries. Their columns have names of their own, c1, c2 and so on."""

    def __init__(self, rng: random.Random, tables: Mapping[str, Relation] = TABLES) -> None:
        self.rng = rng
        self.tables = tables
        self._number = 0

    def query(self, depth: int) -> Relation:
        """A query, a SELECT or a UNION."""
        makers = [self._select, self._joined, self._grouped, self._windowed, self._distinct, self._among, self._cte]
        if depth > 0:
            makers += [self._union]
        return self.rng.choice(makers)(depth)

    def _name(self, prefix: str = "c") -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    def _from(self, depth: int) -> tuple[str, dict[str, str], list[str]]:
        """Something after FROM, with an alias: its text, its qualified columns, and those of its key."""
        alias = self._name("t")
        if depth > 0 and self.rng.random() < 0.5:
            inner = self.query(depth - 1)
            text = f"({inner.text}) {alias}"
        else:
            inner = self.rng.choice([*self.tables.values()])
            text = f"{inner.text} {alias}"
        columns = {f"{alias}.{name}": kind for name, kind in inner.columns.items()}
        return text, columns, [f"{alias}.{name}" for name in inner.key]

    def _of(self, columns: Mapping[str, str], kind: str) -> str:
        found = [name for name, each in columns.items() if each == kind]
        if found:
            return self.rng.choice(found)
        return "1" if kind == "int" else "'Oslo'"

    def _value(self, columns: Mapping[str, str]) -> tuple[str, str]:
        """An expression over columns, and its type."""
        a, b = self._of(columns, "int"), self._of(columns, "int")
        text = self._of(columns, "text")
        return self.rng.choice(
            [
                (self.rng.choice([*columns]), ""),
                (f"{a} + {b}", "int"),
                (f"coalesce({a}, 7)", "int"),
                (f"CASE WHEN {a} > {b} THEN {text} ELSE 'less' END", "text"),
                (f"coalesce({text}, 'none')", "text"),
                (f"CASE WHEN {text} IS NULL THEN 0 ELSE {a} END", "int"),
            ]
        )

    def _condition(self, columns: Mapping[str, str]) -> str:
        a, b, text = self._of(columns, "int"), self._of(columns, "int"), self._of(columns, "text")
        return self.rng.choice(
            [
                f"{a} > {self.rng.randint(0, 3)}",
                f"{a} <> {b}",
                f"{text} = 'Rome'",
                f"({a} < {b} OR {text} IS NULL)",
                f"{text} IS NOT NULL",
                f"NOT coalesce({a} = 2, false)",
            ]
        )

    def _items(self, columns: Mapping[str, str], most: int = 3) -> tuple[str, dict[str, str]]:
        made, kinds = [], {}
        for _ in range(self.rng.randint(1, most)):
            text, kind = self._value(columns)
            name = self._name()
            made.append(f"{text} AS {name}")
            kinds[name] = kind or columns[text]
        return ", ".join(made), kinds

    def _where(self, columns: Mapping[str, str]) -> str:
        if self.rng.random() < 0.5:
            return ""
        return " WHERE " + " AND ".join(self._condition(columns) for _ in range(self.rng.randint(1, 2)))

    def _select(self, depth: int) -> Relation:
        source, columns, _ = self._from(depth)
        items, kinds = self._items(columns)
        return Relation(f"SELECT {items} FROM {source}{self._where(columns)}", kinds)

    def _equality(self, left: Mapping[str, str], right: Mapping[str, str]) -> str:
        kind = "text" if "text" in left.values() and "text" in right.values() and self.rng.random() < 0.4 else "int"
        sign = "<=>" if self.rng.random() < 0.15 else "="
        return f"{self._of(left, kind)} {sign} {self._of(right, kind)}"

    def _joined_from(self, depth: int) -> tuple[str, dict[str, str]]:
        source, columns, _ = self._from(depth)
        visible = dict(columns)
        for _ in range(self.rng.choice([1, 1, 2])):
            other, further, _ = self._from(depth)
            kind = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            conditions = [self._equality(visible, further)]
            if kind != "FULL JOIN" and self.rng.random() < 0.3:
                conditions.append(self._condition({**visible, **further}))
            source = f"{source} {kind} {other} ON {' AND '.join(conditions)}"
            if "SEMI" not in kind and "ANTI" not in kind:
                visible |= further
        return source, visible

    def _joined(self, depth: int) -> Relation:
        source, columns = self._joined_from(max(0, depth - 1))
        items, kinds = self._items(columns, 4)
        return Relation(f"SELECT {items} FROM {source}{self._where(columns)}", kinds)

    def _grouped(self, depth: int) -> Relation:
        if self.rng.random() < 0.4:
            source, columns = self._joined_from(max(0, depth - 1))
        else:
            source, columns, _ = self._from(depth)
        by, kinds, items = [], {}, []
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            text, kind = self._value(columns)
            name = self._name()
            by.append(text)
            items.append(f"{text} AS {name}")
            kinds[name] = kind or columns[text]
        aggregates = ["count(*)", f"sum({self._of(columns, 'int')})", f"min({self._of(columns, 'int')})"]
        aggregates += [f"count(DISTINCT {self._of(columns, 'text')})", f"max({self._of(columns, 'int')}) + count(*)"]
        aggregates += [f"sum({self._of(columns, 'int')}) FILTER (WHERE {self._condition(columns)})"]
        for text in self.rng.sample(aggregates, self.rng.randint(1, 3)):
            name = self._name()
            items.append(f"CAST({text} AS BIGINT) AS {name}")
            kinds[name] = "int"
        group = f" GROUP BY {', '.join(by)}" if by else ""
        having = f" HAVING count(*) > {self.rng.randint(0, 2)}" if by and self.rng.random() < 0.3 else ""
        return Relation(f"SELECT {', '.join(items)} FROM {source}{self._where(columns)}{group}{having}", kinds)

    def _windowed(self, depth: int) -> Relation:
        table = self.rng.choice([each for each in self.tables.values() if each.key])
        alias = self._name("t")
        columns = {f"{alias}.{name}": kind for name, kind in table.columns.items()}
        key = ", ".join(f"{alias}.{name}" for name in table.key)
        value, partition = self._of(columns, "int"), self._value(columns)[0]
        functions = [
            f"row_number() OVER (PARTITION BY {partition} ORDER BY {value} DESC, {key})",
            f"rank() OVER (PARTITION BY {partition} ORDER BY {value})",
            f"CAST(sum({value}) OVER (PARTITION BY {partition}) AS BIGINT)",
            f"lag({value}) OVER (PARTITION BY {self._value(columns)[0]} ORDER BY {key})",
        ]
        items, kinds = self._items(columns)
        name = self._name()
        text = f"SELECT {items}, {self.rng.choice(functions)} AS {name} FROM {table.text} {alias}{self._where(columns)}"
        if self.rng.random() < 0.5:
            return Relation(text, {**kinds, name: "int"})
        outer = self._name("t")
        names = ", ".join(f"{outer}.{each}" for each in kinds)
        return Relation(f"SELECT {names} FROM ({text}) {outer} WHERE {outer}.{name} = 1", kinds)

    def _distinct(self, depth: int) -> Relation:
        source, columns = self._joined_from(max(0, depth - 1))
        items, kinds = self._items(columns)
        return Relation(f"SELECT DISTINCT {items} FROM {source}{self._where(columns)}", kinds)

    def _among(self, depth: int) -> Relation:
        source, columns, _ = self._from(depth)
        inner, others, _ = self._from(max(0, depth - 1))
        items, kinds = self._items(columns)
        subquery = f"SELECT {self._of(others, 'int')} AS {self._name()} FROM {inner}{self._where(others)}"
        return Relation(f"SELECT {items} FROM {source} WHERE {self._of(columns, 'int')} IN ({subquery})", kinds)

    def _cte(self, depth: int) -> Relation:
        inner = self.query(max(0, depth - 1))
        name, one, two = self._name("w"), self._name("t"), self._name("t")
        columns = {f"{one}.{each}": kind for each, kind in inner.columns.items()}
        others = {f"{two}.{each}": kind for each, kind in inner.columns.items()}
        items, kinds = self._items({**columns, **others})
        return Relation(
            f"WITH {name} AS ({inner.text}) SELECT {items} FROM {name} {one} JOIN {name} {two}"
            f" ON {self._equality(columns, others)}",
            kinds,
        )

    def _union(self, depth: int) -> Relation:
        first = self.query(depth - 1)
        parts, kinds = [], [*first.columns.values()]
        for _ in range(self.rng.choice([1, 1, 2])):
            source, columns, _ = self._from(depth - 1)
            items = ", ".join(f"{self._of(columns, kind)} AS {self._name()}" for kind in kinds)
            parts.append(f"SELECT {items} FROM {source}{self._where(columns)}")
        word = self.rng.choice([" UNION ALL ", " UNION ALL ", " UNION "])
        alias = self._name("t")
        names = [self._name() for _ in kinds]
        renamed = ", ".join(f"{alias}.{old} AS {new}" for old, new in zip(first.columns, names, strict=True))
        whole = word.join([f"SELECT {renamed} FROM ({first.text}) {alias}", *parts])
        return Relation(whole, dict(zip(names, kinds, strict=True)))
