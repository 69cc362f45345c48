"""A stand-in for S3."""

from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
import pytest

KEY, SECRET, REGION = "key", "secret", "us-east-1"


@contextmanager
def running(bucket: str) -> Iterator[str]:
    """A store with a new, empty bucket, for what this process does or starts. Yields its address, `host:port`.

    All stores of a process have the same buckets. Skips the test without s3fs or moto.
    """
    pytest.importorskip("s3fs")
    store = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    store.start()
    host, port = store.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        environment.setenv("AWS_ACCESS_KEY_ID", KEY)
        environment.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        environment.setenv("AWS_DEFAULT_REGION", REGION)
        fsspec.filesystem("s3").clear_instance_cache()  # one of a store before has that store's address
        fsspec.filesystem("s3").mkdir(bucket)
        yield f"{host}:{port}"
        fsspec.filesystem("s3").clear_instance_cache()
    store.stop()
