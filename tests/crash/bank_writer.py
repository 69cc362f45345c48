"""Moves money in the bank of two tables until it is killed. Run with the server's URI, a seed and the tables' names."""

import random
import sys

from lake.tables.lake import LakeClient
from tests.lake.client.test_bank import transfer


def main(uri: str, seed: int, names: list[str]) -> None:
    dice = random.Random(seed)
    with LakeClient(uri) as client:
        tables = [client.table(name) for name in names]
        while True:
            if transfer(client, tables, dice):
                print("moved", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
