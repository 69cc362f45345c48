"""What the tests against other systems share: their jars, from Maven, or a skip that says why not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop import maven


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def class_path() -> Callable[..., list[Path]]:
    """`maven.class_path`, which skips the test where the jars can't be had."""

    def resolved(*coordinates: str, exclusions: tuple[str, ...] = ()) -> list[Path]:
        try:
            return maven.class_path(coordinates, exclusions=exclusions)
        except maven.Unavailable as reason:
            pytest.skip(str(reason))

    return resolved
