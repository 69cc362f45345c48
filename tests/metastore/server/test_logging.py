"""What reaches stderr, in both styles."""

import json
import subprocess
import sys

HOSTILE = "t\nforged line\x1b[2Jé\ud800"


def logged(style: str, code: str, level: str = "info") -> list[str]:
    """The lines that a process writes."""
    program = f"""
import logging as standard, structlog, warnings
from lake.protocol import logging
logging.configure({level!r}, {style!r})
logging.name_process("worker-3")
log = structlog.get_logger()
hostile = {HOSTILE!r}
{code}
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout == b""
    return result.stderr.decode().splitlines()


def test_text_keeps_what_clients_sent_on_one_line() -> None:
    [line] = logged("text", "log.info('call', table=hostile)")
    assert "forged line" in line and "\x1b" not in line and "é" in line
    assert "process=worker-3" in line


def test_json_keeps_what_clients_sent_as_it_is() -> None:
    [line] = logged("json", "log.info('call', table=hostile)")
    entry = json.loads(line)
    assert entry["table"] == HOSTILE
    assert (entry["event"], entry["level"], entry["process"]) == ("call", "info", "worker-3")


def test_a_long_fact_is_shortened() -> None:
    for style in ("text", "json"):
        [line] = logged(style, "log.info('call', table='x' * 1_000_000)")
        assert "… (1000000 characters)" in line.encode().decode("unicode_escape" if style == "json" else "utf-8")
        assert len(line) < 1_500


def test_libraries_speak_in_the_same_form_from_warnings_up() -> None:
    code = (
        "standard.getLogger('lib').info('quiet'); standard.getLogger('lib').warning('loud %s', 1); warnings.warn('old')"
    )
    first, second = map(json.loads, logged("json", code))
    assert (first["event"], first["level"]) == ("loud 1", "warning")
    assert "old" in second["event"]


def test_levels() -> None:
    assert len(logged("text", "log.debug('a'); log.info('b'); log.warning('c')", level="warning")) == 1


def test_stack_traces_show_no_values() -> None:
    code = """
def fail(password):
    raise ValueError("bad")
try:
    fail("s3cret")
except ValueError:
    log.exception("failed")
"""
    assert not any("s3cret" in line for line in logged("text", code))
    [entry] = map(json.loads, logged("json", code))
    assert "ValueError: bad" in entry["exception"] and "s3cret" not in entry["exception"]


def test_a_reader_that_left_is_not_missed() -> None:
    program = "from lake.protocol import logging; import structlog, os; logging.configure('info', 'text');"
    program += "os.close(2); structlog.get_logger().info('x'); print('alive')"
    assert subprocess.check_output([sys.executable, "-c", program]) == b"alive\n"
