"""Logs: standard logging, one line per record, with what it is about as fields of its own.

    log = logging.getLogger(__name__)
    with about(controller="rollout", cluster="hub", namespace="shop", name="web"):
        log.info("moved", extra={"clusters": 3})

Every record made inside `about` carries those fields, also if the code knows nothing of them. An object of the API is
never logged in full: it may be a Secret. It is shown as the name of its type.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import msgspec

Format = Literal["json", "text", "logfmt"]

_about: ContextVar[Mapping[str, object] | None] = ContextVar("about", default=None)
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_NAMES = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "fatal"}


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Say of every record made inside what it is about."""
    token = _about.set({**(_about.get() or {}), **fields})
    try:
        yield
    finally:
        _about.reset(token)


@contextmanager
def only_about(**fields: object) -> Iterator[None]:
    """The same of a task that outlives whoever started it, and is not about what that one was about."""
    token = _about.set(fields)
    try:
        yield
    finally:
        _about.reset(token)


def configure(level: str = "INFO", format: Format = "text", stream: TextIO | None = None) -> None:  # noqa: A002
    """Send everything at this level or above to the stream (standard error), and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_FORMATTERS[format]())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, then the fields, then the error with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return msgspec.json.encode(self.entry(record)).decode()

    def entry(self, record: logging.LogRecord) -> dict[str, object]:
        """What the line says."""
        entry: dict[str, object] = {
            "ts": moment(record),
            "level": _NAMES.get(record.levelname, record.levelname.lower()),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        for key, value in fields(record).items():
            entry.setdefault(key, value)
        if traceback := self._traceback(record):
            entry["traceback"] = traceback
        return entry

    def _traceback(self, record: logging.LogRecord) -> str:
        parts = [self.formatException(record.exc_info)] if record.exc_info else []
        parts += [self.formatStack(record.stack_info)] if record.stack_info else []
        return "\n".join(parts)


class LogfmtFormatter(JsonFormatter):
    """The same as `key=value` pairs: the form of Prometheus, Grafana and their operators."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{key}={_logfmt(value)}" for key, value in self.entry(record).items())


class TextFormatter(logging.Formatter):
    """For people: time, level, what happened, then the fields; tracebacks below."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        level = _NAMES.get(record.levelname, record.levelname.lower())
        told = " ".join(f"{key}={_shown(value)}" for key, value in fields(record).items())
        return f"{moment(record)} {level:<5} {record.name}: {record.message}  {told}".rstrip()


_FORMATTERS: dict[str, type[logging.Formatter]] = {
    "json": JsonFormatter,
    "text": TextFormatter,
    "logfmt": LogfmtFormatter,
}


def moment(record: logging.LogRecord) -> str:
    """When it was, to the millisecond, in UTC."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fields(record: logging.LogRecord) -> dict[str, object]:
    """What a record says beyond its message: of what it is about, from `extra`, and the error."""
    found: dict[str, object] = dict(_about.get() or {})
    found.update((key, value) for key, value in vars(record).items() if key not in _OWN)
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        found.setdefault("error", f"{type(error).__name__}: {error}")
    return {key: safe(value) for key, value in found.items() if value is not None}


def safe(value: Any) -> object:
    """A value that can be logged: plain ones as they are, lists of them, and what has words of its own for itself."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [safe(item) for item in value]
    return f"<{type(value).__name__}>" if _holds_data(value) else str(value)


def _holds_data(value: object) -> bool:
    """Whether it would be written out field by field: it has no words of its own."""
    words: object = type(value).__str__
    return isinstance(value, Mapping | bytes | bytearray) or words is object.__str__


def _shown(value: object) -> str:
    text = str(value)
    return msgspec.json.encode(text).decode() if not text or set(text) & set(' "=\n\t') else text


def _logfmt(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _shown(value)
