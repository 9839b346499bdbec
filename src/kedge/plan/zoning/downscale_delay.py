"""Downscale delay: pods prepare for a while before they go.

Each pod that would go is told to prepare (POST), and says since when it is prepared. The StatefulSet loses the pods at
its end that are prepared for long enough. Those that stay are told to forget it (DELETE). Nothing is remembered here:
what counts is what the pods say now.

A timestamp counts if it is a whole number of seconds above 0. One in the future is not reached yet, so that pod waits.
One answer that does not count, or none, and nothing is scaled down.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Struct

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.api.times import format_duration, parse_prometheus_duration
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.zoning.pod_hosts import CLUSTER_DOMAIN, MOST_PODS, pod_host
from kedge.plan.zoning.scaling import PodAnswer, ScaleCode, ScaleStep, ScalingVerdict, annotation, replicas_of, wait_for

LONGEST_BODY: Final = 64 * 1024


class Delay(Struct, frozen=True):
    """How long pods prepare, and where they are told to."""

    length: timedelta
    url: str


class _Prepared(Struct, frozen=True):
    timestamp: int


def delay_of(stateful_set: StatefulSet) -> Delay | Wait | None:
    """The delay of a StatefulSet, or what is wrong with it; None if it has none."""
    text = annotation(stateful_set, zones.DELAYED_DOWNSCALE)
    url = annotation(stateful_set, zones.DELAYED_DOWNSCALE_URL)
    if not text or not url:
        return None
    name = stateful_set.metadata.name
    try:
        length = parse_prometheus_duration(text)
    except ValueError as error:
        return wait_for(name, ScaleCode.delay_invalid, zones.DELAYED_DOWNSCALE, str(error))
    if not length:
        return None
    if problem := url_problem(url):
        return wait_for(name, ScaleCode.delay_invalid, zones.DELAYED_DOWNSCALE_URL, problem)
    return _callable(stateful_set, Delay(length, url))


def _callable(stateful_set: StatefulSet, delay: Delay) -> Delay | Wait:
    """The delay, if the pods have names to call them by."""
    name, replicas = stateful_set.metadata.name, replicas_of(stateful_set)
    if not stateful_set.spec.service_name:
        why = "its pods have no names that can be called"
        return wait_for(name, ScaleCode.delay_invalid, "spec.serviceName", f"it is not set: {why}")
    if replicas > MOST_PODS:
        why = f"it is {replicas}, and at most {MOST_PODS} pods are told to prepare"
        return wait_for(name, ScaleCode.delay_invalid, "spec.replicas", why)
    return delay


def url_problem(url: str) -> str:
    """What is wrong with a URL; empty if nothing is."""
    if not url.isprintable() or " " in url:
        return f"{url!r} is not a URL: it has characters that no URL has"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"{url!r} is not a URL: {error}"
    return "" if parts.scheme in {"http", "https"} else f"{url!r} is not a URL: begin it with http:// or https://"


def endpoint(stateful_set: StatefulSet, url: str, ordinal: int, cluster_domain: str = CLUSTER_DOMAIN) -> str:
    """A URL with the host replaced by that of a pod; port, path and query stay."""
    parts = urlsplit(url)
    host = pod_host(stateful_set, ordinal, cluster_domain)
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    port = f":{parts.port}" if parts.port is not None else ""
    return SplitResult(parts.scheme, f"{user}{host}{port}", parts.path, parts.query, parts.fragment).geturl()


def to_cancel(step: ScaleStep) -> range:
    """The ordinals that stay, and are told to forget that they prepared."""
    return range(min(step.current, step.replicas))


def to_prepare(step: ScaleStep) -> range:
    """The ordinals that would go, the last first."""
    return range(step.current - 1, step.replicas - 1, -1)


def prepared_at(body: bytes) -> datetime:
    """Since when a pod is prepared, as its answer says. ValueError if it does not say that in a way that counts."""
    if len(body) > LONGEST_BODY:
        raise ValueError(f"its answer has {len(body)} bytes, more than {LONGEST_BODY}")
    try:
        timestamp = msgspec.json.decode(body, type=_Prepared).timestamp
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f'its answer is not {{"timestamp": SECONDS}}: {error}') from error
    if timestamp <= 0:
        raise ValueError(f"its timestamp is {timestamp}: it has to be in Unix seconds, and above 0")
    try:
        return datetime.fromtimestamp(timestamp, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"its timestamp is {timestamp}: that is no time in Unix seconds") from error


def delayed(step: ScaleStep, delay: Delay, answers: Iterable[PodAnswer], now: datetime) -> ScalingVerdict:
    """How far a step down may go, given what the pods said, or what it waits for."""
    found = {one.ordinal: one for one in answers}
    answered = [found.get(ordinal) or PodAnswer(ordinal, problem="it was not asked") for ordinal in to_prepare(step)]
    prepared = [one.prepared_at for one in answered if one.prepared_at is not None]
    if len(prepared) < len(answered):
        return ScalingVerdict(waits=(_not_prepared(step, answered),))
    elapsed, until = 0, None
    for moment in prepared:
        until = _later(moment, delay.length)
        if until is None or now < until:
            break
        elapsed += 1
    if not elapsed:
        return ScalingVerdict(waits=(_not_reached(step, delay, answered[0], until),), until=until)
    return ScalingVerdict(msgspec.structs.replace(step, replicas=step.current - elapsed))


def _name(step: ScaleStep, answer: PodAnswer) -> str:
    return answer.pod or f"{step.name}-{answer.ordinal}"


def _later(moment: datetime, length: timedelta) -> datetime | None:
    """The moment so much later; None if no calendar has it."""
    try:
        return moment + length
    except OverflowError:
        return None


def _not_prepared(step: ScaleStep, answered: list[PodAnswer]) -> Wait:
    failed = [one for one in answered if one.prepared_at is None]
    blockers = tuple(Blocker(_name(step, one), reported=one.problem) for one in failed)
    numbers = {"failed": len(failed), "pods": len(to_prepare(step))}
    return Wait(step.name, ScaleCode.pods_not_prepared, numbers, blockers)


def _not_reached(step: ScaleStep, delay: Delay, answer: PodAnswer, until: datetime | None) -> Wait:
    blocker = Blocker(
        _name(step, answer), since=answer.prepared_at, until=until, reported=format_duration(delay.length)
    )
    return Wait(step.name, ScaleCode.delay_not_reached, {"seconds": int(delay.length.total_seconds())}, (blocker,))
