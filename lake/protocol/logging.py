"""Log lines on stderr: for people, or one JSON object each.

Everything in the server logs with `structlog.get_logger(__name__)`, an event and its facts:
`log.info("call", method="get_table", seconds=0.002)`. What libraries have to say arrives in the same form,
from warnings up.
"""

import contextlib
import logging
import os
import sys
from typing import Literal

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

MAX_TEXT = 1_000
"""Of a fact in a line, in characters."""

# A processor adds it: loggers are cached on first use, so a forked child couldn't configure them anew.
_process_name = ""


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Set up logging of this process and of those it forks. `level` is one of debug, info, warning, error."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    stream = _Stderr()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_process,
        _shorten,
        structlog.processors.add_log_level,
    ]
    renderers: list[Processor]
    if style == "json":
        shared += [structlog.processors.TimeStamper(fmt="iso"), structlog.processors.format_exc_info]
        renderers = [structlog.processors.JSONRenderer()]
    else:
        shared += [structlog.processors.TimeStamper(fmt="%Y-%m-%d %H:%M:%S", utc=False), _escape]
        renderers = [
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                sort_keys=False,
                # Not rich's: it shows local variables, passwords among them.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(stream),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[handler], force=True)
    logging.captureWarnings(True)
    # Its client, which probes our port, logs what it raises anyway.
    logging.getLogger("thrift").setLevel(logging.CRITICAL)


def name_process(name: str) -> None:
    """Say in every later line of this process that it is `name`."""
    global _process_name
    _process_name = name


class _Stderr:
    """Writes a line with one system call, so that lines of several processes don't mix, and never fails: a
    server must not end because nobody reads its log any more."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace"))
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


def _add_process(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    if _process_name:
        event["process"] = _process_name
    return event


def _shorten(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """However long what a client sent is: a line of the log stays one that can be read."""
    for key, value in event.items():
        if isinstance(value, str) and len(value) > MAX_TEXT and key not in ("exception", "stack"):
            event[key] = f"{value[:MAX_TEXT]}… ({len(value)} characters)"
    return event


def _escape(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Line ends and control characters in what a client sent can't forge a line or drive a terminal."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable() and key not in ("exception", "stack"):
            event[key] = "".join(
                c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in value
            )
    return event
