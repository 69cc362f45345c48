"""Servers that make their databases themselves."""

from collections.abc import Iterator

import pytest

from tests.support.server import MetastoreServer


@pytest.fixture(scope="package", autouse=True)
def logs_of_their_own() -> Iterator[None]:
    """The copies of one database would have the same event log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetastoreServer, "from_template", False)
        yield
