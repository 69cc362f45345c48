"""The database of a small shop: a Postgres of its own, and a till that writes orders into it.

Each transaction is counted in the table `ledger`, with what all orders come to after it.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
from sqlalchemy import make_url

from metastore.server.embedded_postgres import EmbeddedPostgres

SETTINGS: dict[str, str | int] = {
    "wal_level": "logical",
    "max_slot_wal_keep_size": "1GB",
    "max_wal_senders": 4,
    "max_replication_slots": 4,
}
PUBLICATION = "lake"
CATEGORIES = ("books", "games", "music")

_TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, city text);
CREATE TABLE products (id int PRIMARY KEY, category text, price numeric(10,2));
CREATE TABLE orders (id int PRIMARY KEY, customer int, product int, amount numeric(12,2), at timestamp);
CREATE TABLE ledger (id int PRIMARY KEY, transactions int, total numeric(18,2));
INSERT INTO customers SELECT n, (ARRAY['Oslo', 'Rome', 'Bonn', 'Kyiv'])[n % 4 + 1] FROM generate_series(1, 200) n;
INSERT INTO products SELECT n, (ARRAY['books', 'games', 'music'])[n % 3 + 1], n * 1.25 FROM generate_series(1, 60) n;
INSERT INTO orders SELECT n, n % 200 + 1, n % 60 + 1, (n % 60 + 1) * 1.25,
  timestamp '2026-01-31 08:00' + n * interval '6 s' FROM generate_series(1, 3000) n;
INSERT INTO ledger SELECT 1, 0, sum(amount) FROM orders;
CREATE PUBLICATION lake FOR TABLE customers, products, orders, ledger;
"""


class Shop:
    """The shop's database. `totals`: what all orders came to after each transaction, by its number."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.totals: dict[int, Decimal] = {}
        self._random = random.Random(7)
        self._connection = psycopg2.connect(url)
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(_TABLES)
        self._remember()

    def close(self) -> None:
        self._connection.close()

    def sell(self) -> None:
        """One transaction: new orders, one that changes, one that is cancelled, a customer who moves."""
        chance = self._random
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO orders SELECT top + n, 1 + (top * 7 + n) %% 200, p.id, p.price,"
                " timestamp '2026-01-31 08:00' + (top + n) * interval '6 s'"
                " FROM (SELECT max(id) AS top FROM orders) t, generate_series(1, %s) n"
                " JOIN products p ON p.id = 1 + (n * 11 + %s) %% 60",
                (chance.randint(1, 4), chance.randrange(60)),
            )
            some = (chance.randint(1, 3_000),)
            cursor.execute("UPDATE orders SET amount = amount + 1 WHERE id = %s", some)
            if chance.random() < 0.3:
                cursor.execute("DELETE FROM orders WHERE id = %s", (chance.randint(1, 3_000),))
            if chance.random() < 0.1:
                cursor.execute("UPDATE customers SET city = 'Lima' WHERE id = %s", (chance.randint(1, 200),))
            cursor.execute(
                "UPDATE ledger SET transactions = transactions + 1, total = (SELECT sum(amount) FROM orders)"
            )
        self._remember()

    def corrupt(self) -> int:
        """A faulty program: all orders of one category cost a hundred times as much. Returns how many they are."""
        return self._change_games("amount * 100")

    def mend(self) -> None:
        """Undoes `corrupt`."""
        self._change_games("amount / 100")

    def revenue(self, least: int = 0) -> dict[tuple[str, str], tuple[Decimal, int]]:
        """Revenue and number of orders by hour and category, as the shop itself has them. `least`: of an order."""
        rows = self._rows(
            "SELECT to_char(date_trunc('hour', at), 'YYYY-MM-DD HH24:MI'), category, sum(amount), count(*)"
            " FROM orders JOIN products ON orders.product = products.id"
            f" WHERE amount >= {least} GROUP BY 1, 2"
        )
        return {(hour, category): (amount, count) for hour, category, amount, count in rows}

    @contextmanager
    def selling(self, seconds_between: float) -> Iterator[None]:
        """Sells beside everything else, until the context ends. Raises what went wrong with it."""
        stop, wrong = threading.Event(), []

        def sell() -> None:
            try:
                while not stop.wait(seconds_between):
                    self.sell()
            except Exception as error:
                wrong.append(error)

        till = threading.Thread(target=sell, name="till", daemon=True)
        till.start()
        try:
            yield
        finally:
            stop.set()
            till.join()
        if wrong:
            raise wrong[0]

    def _change_games(self, amount: str) -> int:
        """One transaction that the ledger counts, but whose amounts it doesn't believe."""
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE orders SET amount = {amount}"
                " WHERE product IN (SELECT id FROM products WHERE category = 'games')"
            )
            changed = int(cursor.rowcount)
            cursor.execute("UPDATE ledger SET transactions = transactions + 1")
        self._remember()
        return changed

    def _remember(self) -> None:
        [(number, total)] = self._rows("SELECT transactions, total FROM ledger")
        self.totals[number] = total

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection, self._connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()


@contextmanager
def running_shop(directory: Path) -> Iterator[Shop]:
    """A shop with its database in `directory`; both end with the context."""
    server = EmbeddedPostgres(directory, settings=SETTINGS)
    url = make_url(server.start()).set(drivername="postgresql")
    try:
        shop = Shop(url.render_as_string(hide_password=False))
        try:
            yield shop
        finally:
            shop.close()
    finally:
        server.stop()
