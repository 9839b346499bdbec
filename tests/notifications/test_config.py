"""The configuration of notifications: what it means, and what is refused, without showing a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kedge.api.core import ObjectReference
from kedge.kube.events import RecordedEvent
from kedge.notifications.config import (
    ConfigError,
    EventFilter,
    NotificationsConfig,
    ReceiverConfig,
    WebhookTarget,
    load,
    parse,
)

SECRET = "hunter2-hunter2-hunter2"
HOOK = f"https://user:{SECRET}@hooks.example.com/{SECRET}?token={SECRET}"
WHOLE = f"""
source: https://hub.example.com
receivers:
- name: on-call
  url: slack://{SECRET}
  events: {{types: [Warning], reasons: [RunStuck, RunFailed], kinds: [StagedUpdateRun], namespaces: [shop]}}
- name: audit
  webhook: {{url: "{HOOK}", secret: {SECRET}}}
"""


def test_every_field_has_its_place() -> None:
    assert parse(WHOLE) == NotificationsConfig(
        source="https://hub.example.com",
        receivers=(
            ReceiverConfig(
                name="on-call",
                url=f"slack://{SECRET}",
                events=EventFilter(("RunStuck", "RunFailed"), ("Warning",), ("StagedUpdateRun",), ("shop",)),
            ),
            ReceiverConfig(name="audit", webhook=WebhookTarget(HOOK, SECRET)),
        ),
    )


def test_nothing_of_it_shows_a_secret() -> None:
    config = parse(WHOLE)
    shown = [repr(part) for part in (config, *config.receivers, config.receivers[1].webhook)]
    assert SECRET not in " ".join(shown)


def receiver(fields: str) -> str:
    return f"receivers:\n- {{{fields}}}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "this is no mapping: write `receivers:`, and a list below it"),
        ("- a\n", "this is no mapping: write `receivers:`, and a list below it"),
        (f"{SECRET}: {SECRET}: x", "this is no YAML at line 1, column 49"),
        (f"receivers: [{SECRET}\n", "this is no YAML at line 2, column 1"),
        (f"receivers: !!python/object {SECRET}\n", "this is no YAML at line 1, column 12"),
        ("receivers: \x00", "this is no YAML"),
        ("{}", "receivers is missing"),
        ("receivers: []", "receivers: there is none: name one, or leave the option away"),
        ("receivers: {}", "receivers: Expected a list, got a mapping"),
        ("receivers: [x]", "receivers[0]: Expected a mapping, got text"),
        (f"receivers: []\n{'sauce'}: x", "there is no field sauce"),
        (f"source: 'a b'\n{receiver('name: a, url: json://x')}",
         "source: write a URI without spaces, such as https://hub.example.com or /clusters/hub"),
        (f"source: ''\n{receiver('name: a, url: json://x')}",
         "source: write a URI without spaces, such as https://hub.example.com or /clusters/hub"),
        (receiver(f"url: 'json://{SECRET}'"), "receivers[0]: name is missing"),
        (receiver("name: 7, url: json://x"), "receivers[0].name: Expected text, got `int`"),
        (receiver("name: On Call, url: json://x"),
         "receivers[0].name: write a-z, 0-9 and dashes, such as on-call, at most 63 characters"),
        (receiver("name: '', url: json://x"),
         "receivers[0].name: write a-z, 0-9 and dashes, such as on-call, at most 63 characters"),
        (receiver("name: a"), "receivers[0].url: write either url or webhook, and not both"),
        (receiver(f"name: a, url: 'json://{SECRET}', webhook: {{url: '{HOOK}'}}"),
         "receivers[0].url: write either url or webhook, and not both"),
        (receiver(f"name: a, url: {SECRET}"),
         "receivers[0].url: this is no URL of apprise: write one such as slack://… or mailto://…"),
        (receiver(f"name: a, url: [{SECRET}]"), "receivers[0].url: Expected text, got a list"),
        (receiver("name: a, webhook: {}"), "receivers[0].webhook: url is missing"),
        (receiver(f"name: a, webhook: {{url: 'ftp://{SECRET}/'}}"),
         "receivers[0].webhook.url: this is no http:// or https:// URL"),
        (receiver(f"name: a, webhook: {{url: 'https://{SECRET}:x'}}"),
         "receivers[0].webhook.url: this is no http:// or https:// URL"),
        (receiver(f"name: a, webhook: {{url: '/{SECRET}'}}"),
         "receivers[0].webhook.url: this is no http:// or https:// URL"),
        (receiver("name: a, webhook: {url: 'https://a', secret: short}"),
         "receivers[0].webhook.secret: it can be guessed: write at least 16 characters"),
        (receiver(f"name: a, webhook: {{url: '{HOOK}', token: {SECRET}}}"),
         "receivers[0].webhook: there is no field token"),
        (receiver("name: a, url: json://x, events: {types: [warning]}"),
         "receivers[0].events.types: 'warning' is no type of an event: write Normal or Warning"),
        (receiver("name: a, url: json://x, events: {types: Warning}"),
         "receivers[0].events.types: Expected a list, got text"),
        (receiver("name: a, url: json://x, events: {reasons: ['']}"),
         "receivers[0].events.reasons: one of them is empty"),
        (receiver("name: a, url: json://x, events: {reason: [A]}"),
         "receivers[0].events: there is no field reason"),
        (receiver(f"name: a, 'slack://{SECRET}': x"), "receivers[0]: there is a field that is not known"),
        (f"{receiver('name: a, url: json://x')}- {{name: a, url: json://y}}\n",
         "receivers: a is the name of two: choose another, since metrics and logs use it"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_field_and_without_a_secret(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert str(refused.value) == says
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_errors_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "notifications.yaml"
    with pytest.raises(ConfigError, match=r"notifications\.yaml cannot be read: No such file or directory"):
        load(file)
    file.write_text("receivers: []")
    with pytest.raises(ConfigError, match=r"notifications\.yaml: receivers: there is none"):
        load(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"notifications\.yaml is no text in UTF-8"):
        load(file)
    file.write_text(WHOLE)
    assert load(file) == parse(WHOLE)


ABOUT = ObjectReference(api_version="v1", kind="StagedUpdateRun", namespace="shop", name="web")
EVENT = RecordedEvent("hub", "kedge", ABOUT, "Warning", "RunStuck", "stuck", datetime(2026, 3, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (EventFilter(), True),
        (EventFilter(types=("Warning",)), True),
        (EventFilter(types=("Normal", "Warning")), True),
        (EventFilter(types=("Normal",)), False),
        (EventFilter(reasons=("RunStuck",)), True),
        (EventFilter(reasons=("RunFailed",)), False),
        (EventFilter(kinds=("StagedUpdateRun",)), True),
        (EventFilter(kinds=("Deployment",)), False),
        (EventFilter(namespaces=("shop",)), True),
        (EventFilter(namespaces=("web",)), False),
        (EventFilter(types=("Warning",), namespaces=("web",)), False),
    ],
)
def test_a_receiver_gets_what_all_its_lists_allow(wanted: EventFilter, matches: bool) -> None:
    assert wanted.matches(EVENT) is matches
