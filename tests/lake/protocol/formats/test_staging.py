"""Where batches are staged."""

import pytest

from lake.protocol.formats import staging


def test_what_is_made_is_read_back() -> None:
    location = staging.location("s3://lake/shop/orders", "job-1", 12, "0123456789abcdef")
    assert location == "s3://lake/shop/orders/.staging/job-1/12/0123456789abcdef"
    assert staging.parse(location) == (staging.writer_directory("s3://lake/shop/orders", "job-1"), 12)


@pytest.mark.parametrize("location", ["file:/lake/orders/job/12/a", "file:/lake/.staging/job/x/a", "12"])
def test_other_locations_are_refused(location: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        staging.parse(location)
