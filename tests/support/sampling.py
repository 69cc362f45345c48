"""Which cases of a test an ordinary run has: all, or with `@pytest.mark.sampled(4)` one of four. Others are long."""

from collections import Counter

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None or item.get_closest_marker("long") or "spark3.5" in item.name:  # an older line has its own rule
            continue
        test = item.nodeid.partition("[")[0]
        if seen[test] % mark.args[0]:
            item.add_marker(pytest.mark.long)
        seen[test] += 1
