"""A disk that is full where the server counts: no process ends, and the counts are right again once there is room."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

COUNTING = """
import os, sys
from pathlib import Path
from metastore.server.monitoring import metrics

place = Path(sys.argv[1])
metrics.start(place / "metrics")
ballast = place / "ballast"

def fill():
    with open(ballast, "ab", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 1024)
        except OSError:
            pass

when = sys.argv[2]
if when == "first":
    fill()
metrics.request_finished("get_table", "ok", 0.1)
fill()
for number in range(2000):  # each a series of its own: far more than a file's first 64 KiB
    metrics.request_finished(f"method_{number}", "ok", 0.1)
    metrics.bytes_sent(1)
if when == "later":
    ballast.unlink()
    for number in range(2000):
        metrics.request_finished(f"method_{number}", "ok", 0.1)
    text = metrics.exposition()[0].decode()
    assert 'metastore_requests_total{method="get_table",outcome="ok"} 1.0' in text
    assert 'metastore_requests_total{method="method_1999",outcome="ok"} 2.0' in text, text[-2000:]
    assert "metastore_sent_bytes_total 2000.0" in text
metrics.exposition()
print("alive")
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", str(place)]
    mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"may not mount: {mounted.stderr}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("when", ["first", "then"])
def test_counting_on_a_full_disk(small_disk: Path, when: str) -> None:
    assert _count(small_disk, when) == "alive"


@pytest.mark.long
def test_what_was_counted_meanwhile_is_shown_once_there_is_room(small_disk: Path) -> None:
    assert _count(small_disk, "later") == "alive"


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """As a disk that is full, for who may not mount one."""
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n{COUNTING}"
    assert _count(tmp_path, "then", limited) == "alive"


def _count(place: Path, when: str, program: str = COUNTING) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, str(place), when], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout.splitlines()[-1]
