"""Config: who is notified of what, as a YAML file says.

    receivers:
    - name: on-call
      url: slack://TokenA/TokenB/TokenC      # anything apprise knows
      events: {types: [Warning]}
    - name: audit
      webhook: {url: "https://audit.example.com/events", secret: a long random text}

Refuses (`ConfigError`) what it does not understand, and names the field. URLs and secrets are in no error, and in no
`repr`: whoever knows one can write to the chat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct
from yarl import URL

from kedge.api.redacted import Redacted
from kedge.kube.events import NORMAL, WARNING, RecordedEvent

SHORTEST_SECRET: Final = 16
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_FILTERS: Final = ("reasons", "types", "kinds", "namespaces")
_PLAINER: Final = (
    (re.compile("`array`"), "a list"),
    (re.compile("`object`"), "a mapping"),
    (re.compile("`str`"), "text"),
    (re.compile("Object missing required field `(.*)`"), r"\1 is missing"),
    (re.compile("Object contains unknown field `([A-Za-z]{1,20})`"), r"there is no field \1"),
    (re.compile("Object contains unknown field.*", re.DOTALL), "there is a field that is not known"),  # maybe a URL
)


class ConfigError(Exception):
    """The configuration cannot be used; the message names the field, and what to do."""


class EventFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """Which events a receiver wants. Each list is one of values; an empty one allows all."""

    reasons: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """`Normal`, `Warning`."""
    kinds: tuple[str, ...] = ()
    """Kinds of the objects, such as `StagedUpdateRun`."""
    namespaces: tuple[str, ...] = ()
    """Namespaces of the objects. Objects without a namespace are in none of them."""

    def matches(self, event: RecordedEvent) -> bool:
        asked = (
            (self.reasons, event.reason),
            (self.types, event.type),
            (self.kinds, event.about.kind),
            (self.namespaces, event.about.namespace),
        )
        return all(not wanted or value in wanted for wanted, value in asked)


class WebhookTarget(Redacted, Struct, frozen=True, forbid_unknown_fields=True):
    """A URL that CloudEvents are posted to."""

    url: str
    secret: str = ""
    """What deliveries are signed with; empty: they are not signed."""


class ReceiverConfig(Redacted, Struct, frozen=True, forbid_unknown_fields=True):
    """One receiver: either `url`, which is apprise's, or `webhook`."""

    name: str
    url: str = ""
    webhook: WebhookTarget | None = None
    events: EventFilter = EventFilter()


class NotificationsConfig(Redacted, Struct, frozen=True, forbid_unknown_fields=True):
    """All receivers of one process."""

    receivers: tuple[ReceiverConfig, ...]
    source: str = "/kedge"
    """What this installation is called in CloudEvents, and in the titles of messages."""


def load(path: Path) -> NotificationsConfig:
    """The configuration in this file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8") from None
    try:
        return parse(text)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(text: str) -> NotificationsConfig:
    """The configuration that this YAML says."""
    found = _read_yaml(text)
    if not isinstance(found, Mapping):
        raise ConfigError("this is no mapping: write `receivers:`, and a list below it")
    try:
        config = msgspec.convert(found, NotificationsConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(_with_field(str(error))) from None  # the cause would show the document
    for problem in _problems(config):
        raise ConfigError(problem)
    return config


def _read_yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:  # its own text shows the line, which may hold a secret
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"this is no YAML{where}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ConfigError("this is no YAML") from None


def _with_field(text: str) -> str:
    """msgspec's ``Expected `str`, got `int` - at `$.receivers[0].name` `` with the field first."""
    said, _, place = text.partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    for words, ours in _PLAINER:
        said = words.sub(ours, said)
    return f"{field}: {said}" if field else said


def _problems(config: NotificationsConfig) -> Iterable[str]:
    if not config.receivers:
        yield "receivers: there is none: name one, or leave the option away"
    if not config.source or not config.source.isprintable() or " " in config.source:
        yield "source: write a URI without spaces, such as https://hub.example.com or /clusters/hub"
    for index, receiver in enumerate(config.receivers):
        for field, problem in _receiver_problems(receiver):
            yield f"receivers[{index}].{field}: {problem}"
    for name in _repeated([receiver.name for receiver in config.receivers]):
        yield f"receivers: {name} is the name of two: choose another, since metrics and logs use it"


def _receiver_problems(receiver: ReceiverConfig) -> Iterable[tuple[str, str]]:
    if not _NAME.fullmatch(receiver.name):
        yield "name", "write a-z, 0-9 and dashes, such as on-call, at most 63 characters"
    if (receiver.webhook is None) == (not receiver.url):
        yield "url", "write either url or webhook, and not both"
    if receiver.url and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", receiver.url):
        yield "url", "this is no URL of apprise: write one such as slack://… or mailto://…"
    if receiver.webhook is not None:
        yield from _webhook_problems(receiver.webhook)
    yield from _filter_problems(receiver.events)


def _webhook_problems(webhook: WebhookTarget) -> Iterable[tuple[str, str]]:
    if not _is_http(webhook.url):
        yield "webhook.url", "this is no http:// or https:// URL"
    if webhook.secret and len(webhook.secret) < SHORTEST_SECRET:
        yield "webhook.secret", f"it can be guessed: write at least {SHORTEST_SECRET} characters"


def _filter_problems(events: EventFilter) -> Iterable[tuple[str, str]]:
    for name in _FILTERS:
        if "" in getattr(events, name):
            yield f"events.{name}", "one of them is empty"
    for given in events.types:
        if given not in (NORMAL, WARNING):
            yield "events.types", f"{given!r} is no type of an event: write {NORMAL} or {WARNING}"


def _is_http(url: str) -> bool:
    try:
        found = URL(url)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and bool(found.host)


def _repeated(names: Sequence[str]) -> Iterable[str]:
    return dict.fromkeys(name for name in names if names.count(name) > 1)
