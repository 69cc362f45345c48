"""Generates scripts and lists the kinds of differences, each with a short script: `python -m tests.parity.survey`.

A test stops at the first difference; this collects them, to be gone through one after the other.
"""

import argparse
import contextlib
import tempfile
import time
import traceback
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.parity.calls import Script
from tests.parity.families import FAMILIES
from tests.parity.play import Pair, explain
from tests.parity.shorten import shortened
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer
from tests.support.target import Target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=sorted(FAMILIES), action="append")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    kinds: dict[tuple[str, ...], int] = {}
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as directory,
        HiveReference(Path(directory) / "hive") as hive,
        MetastoreServer(Path(directory) / "ours") as ours,
    ):
        pair = Pair(
            Target("hive", hive.host, hive.port, hive.log),
            Target("ours", ours.host, ours.port, ours.log),
            Path(directory) / "beside",
        )
        for name in options.family or sorted(FAMILIES):
            survey(pair, name, options, kinds)
        pair.close()
    print(f"{time.monotonic() - begun:.0f} s, {pair.scripts} scripts, {pair.calls} calls on each server")
    for signature, count in sorted(kinds.items(), key=lambda item: -item[1]):
        print(f"{count:5} {signature}")


def survey(pair: Pair, name: str, options: argparse.Namespace, kinds: dict[tuple[str, ...], int]) -> None:
    until = time.monotonic() + options.seconds

    @seed(options.seed)
    @settings(
        max_examples=1_000_000,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(FAMILIES[name])
    def play(script: Script) -> None:
        if time.monotonic() > until:
            raise KeyboardInterrupt
        try:
            found = pair.differences(script)
        except Exception:
            print("the runner failed:", explain(script, []), traceback.format_exc(), flush=True)
            return
        if not found:
            return
        signature = found[0].signature
        kinds[signature] = kinds.get(signature, 0) + 1
        if kinds[signature] == 1:
            best, again = shortened(pair, script, found)
            print(f"--- {name}: {signature}\n{explain(best, again)}\n", flush=True)

    with contextlib.suppress(KeyboardInterrupt):
        play()


if __name__ == "__main__":
    main()
