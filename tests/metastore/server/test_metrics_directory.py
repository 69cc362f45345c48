"""Where the processes of a server share their counters."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metastore.server.monitoring import metrics_directory
from metastore.server.monitoring.metrics_directory import MetricsDirectory

OF_ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
from metastore.server.monitoring import metrics_directory
metrics_directory._MEMORY = Path(sys.argv[1])
print(metrics_directory.MetricsDirectory(Path(sys.argv[1]) / "disk").make(), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    place = tmp_path / "memory"
    place.mkdir()
    monkeypatch.setattr(metrics_directory, "_MEMORY", place)
    return place


def test_it_is_private_and_removed_at_the_end(memory: Path, tmp_path: Path) -> None:
    directory = MetricsDirectory(tmp_path / "disk")
    path = directory.make()
    assert path.parent == memory
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "counter_1.db").touch()
    directory.remove()
    assert [*memory.iterdir()] == []
    assert not (tmp_path / "disk").exists()


def test_without_a_place_in_memory_it_is_on_the_disk(memory: Path, tmp_path: Path) -> None:
    memory.rmdir()
    directory = MetricsDirectory(tmp_path / "run" / "metrics")
    assert directory.make() == tmp_path / "run" / "metrics"
    directory.remove()
    assert (tmp_path / "run" / "metrics").is_dir()


def test_what_a_killed_server_left_is_removed_and_not_what_a_living_one_has(memory: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OF_ANOTHER_PROCESS, str(memory)], stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            theirs = Path(other.stdout.readline().strip())
            first = MetricsDirectory(tmp_path / "disk")
            mine = first.make()
            assert theirs.is_dir()
        finally:
            os.kill(other.pid, signal.SIGKILL)
            other.wait()
    second = MetricsDirectory(tmp_path / "disk").make()
    assert {*memory.iterdir()} == {mine, second}


def test_what_others_have_put_there_is_left_alone(memory: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lock").touch()
    link = memory / f"metastore-{os.geteuid()}-link"
    link.symlink_to(elsewhere)
    empty = memory / f"metastore-{os.geteuid()}-empty"
    empty.mkdir()
    MetricsDirectory(tmp_path / "disk").make()
    assert (elsewhere / "lock").exists()
    assert link.is_symlink()
    assert empty.is_dir()
