"""One line per record, with what it is about as fields, and never an object's data."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta
from kedge.kube import logs
from kedge.kube.logs import JsonFormatter, LogfmtFormatter, TextFormatter, about, safe
from kedge.kube.queue import Key


def record(message: str = "moved %d", *args: object, **fields: Any) -> logging.LogRecord:
    given = args or ((3,) if "%" in message else ())
    made = logging.LogRecord("kedge.test", logging.INFO, "test.py", 1, message, given, None)
    made.created = 1_700_000_000.25
    vars(made).update(fields)
    return made


def failed(error: Exception) -> logging.LogRecord:
    made = record("it failed")
    try:
        raise error
    except type(error):
        made.exc_info = sys.exc_info()
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    text = JsonFormatter().format(made)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_record_is_one_json_object() -> None:
    assert as_json(record()) == {
        "ts": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "kedge.test",
        "msg": "moved 3",
    }


def test_what_is_given_as_extra_becomes_fields() -> None:
    shown = as_json(record(cluster="hub", count=2, ratio=0.5, ok=True, names=["a", "b"], key=Key("hub", None, "n")))
    del shown["ts"], shown["level"], shown["logger"], shown["msg"]
    assert shown == {
        "cluster": "hub",
        "count": 2,
        "ratio": 0.5,
        "ok": True,
        "names": ["a", "b"],
        "key": "hub/n",
    }


def test_fields_cannot_take_the_place_of_the_usual_ones() -> None:
    assert as_json(record(level="loud", ts="never"))["level"] == "info"


def test_what_a_block_is_about_is_said_of_every_record_in_it() -> None:
    with about(controller="rollout", cluster="hub"):
        with about(cluster="member", namespace=None):
            shown = as_json(record(extra=1))
            assert (shown["controller"], shown["cluster"], shown["extra"]) == ("rollout", "member", 1)
            assert "namespace" not in shown
        assert as_json(record())["cluster"] == "hub"
    assert "cluster" not in as_json(record())


async def test_tasks_do_not_mix_up_what_they_are_about() -> None:
    async def work(name: str) -> str:
        with about(cluster=name):
            await asyncio.sleep(0)
            found: str = as_json(record())["cluster"]
            return found

    assert list(await asyncio.gather(work("a"), work("b"))) == ["a", "b"]


def test_an_error_comes_with_its_traceback_on_the_same_line() -> None:
    shown = as_json(failed(ValueError("bad\nnews")))
    assert shown["error"] == "ValueError: bad\nnews"
    assert shown["traceback"].startswith("Traceback (most recent call last)")


def test_a_stack_is_shown_when_asked_for() -> None:
    assert as_json(record(stack_info="Stack (most recent call last): here"))["traceback"].startswith("Stack")


SECRET = ConfigMap(metadata=ObjectMeta(name="password"), data={"password": "hunter2"})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(SECRET, "<ConfigMap>", id="a typed object"),
        pytest.param({"data": {"password": "hunter2"}}, "<dict>", id="an untyped object"),
        pytest.param([SECRET], ["<ConfigMap>"], id="a list of objects"),
        pytest.param(b"hunter2", "<bytes>", id="bytes"),
        pytest.param(Path("a") / "b", str(Path("a") / "b"), id="a path"),
        pytest.param(ValueError("why"), "why", id="an error"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_an_object_shows_as_the_name_of_its_type(value: object, shown: object) -> None:
    assert safe(value) == shown


def test_people_get_a_line_they_can_read() -> None:
    text = TextFormatter().format(record(cluster="hub", why="no room"))
    assert text == '2023-11-14T22:13:20.250Z info  kedge.test: moved 3  cluster=hub why="no room"'


def test_people_get_tracebacks_below() -> None:
    first, second, *_ = TextFormatter().format(failed(ValueError("bad"))).splitlines()
    assert first.endswith('it failed  error="ValueError: bad"')
    assert second == "Traceback (most recent call last):"


def test_a_line_of_logfmt_has_the_same_fields_and_stays_one_line() -> None:
    assert LogfmtFormatter().format(record(cluster="hub", ok=True, why="a b")) == (
        'ts=2023-11-14T22:13:20.250Z level=info logger=kedge.test msg="moved 3" cluster=hub ok=true why="a b"'
    )
    line = LogfmtFormatter().format(failed(ValueError("bad")))
    assert "\n" not in line
    assert 'traceback="Traceback (most recent call last):\\n' in line


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []  # basicConfig(force=True) closes what it replaces, and these are pytest's
    yield
    logging.captureWarnings(False)
    root.handlers = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize(
    ("format", "expected"), [("json", '"msg":"heard"'), ("text", "kedge.test: heard"), ("logfmt", " msg=heard")]
)
def test_configure_chooses_level_and_form(format: logs.Format, expected: str) -> None:  # noqa: A002
    stream = io.StringIO()
    logs.configure("warning", format, stream)
    log = logging.getLogger("kedge.test")
    log.info("not heard")
    log.warning("heard")
    (line,) = stream.getvalue().splitlines()
    assert expected in line


@pytest.mark.usefixtures("restored")
def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="LOUD"):
        logs.configure("loud")
