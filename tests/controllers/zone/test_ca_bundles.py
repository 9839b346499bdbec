"""Authorities in webhook configurations: which get them, when, and what is left alone."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from controllers.zone.certificate_bed import Bed, Kinds, play, until_shown, webhook
from kedge.api.admission import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kedge.api.zones import INJECT_CA, INJECT_NAMESPACE
from kedge.controllers.zone.ca_bundles import bundle_patch, lacks_bundle
from kedge.controllers.zone.webhook_configurations import of_namespaces
from kedge.kube.codec import untyped
from kedge.kube.patches import JsonPatch, MergePatch
from support.waiting import until_so

KINDS: tuple[Kinds, ...] = (ValidatingWebhookConfiguration, MutatingWebhookConfiguration)
VALIDATING = untyped(ValidatingWebhookConfiguration.resource)


@pytest.mark.parametrize("kind", KINDS)
def test_every_webhook_of_a_labelled_configuration_gets_the_bundle(kind: Kinds) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("before", kind, hooks=3)
        async with bed.replica() as one:
            await until_shown(one)
            assert await bed.until_injected("before", kind) == one.certificates.ca_bundle
            await bed.configure("later", kind)
            await bed.until_injected("later", kind)

    play(act)


OTHERS: dict[str, dict[str, Any]] = {
    "another namespace": {"namespace": "other"},
    "not asked for": {"inject": "false"},
    "another word": {"inject": "True"},
}


@pytest.mark.parametrize("row", OTHERS)
def test_other_configurations_are_left_alone(row: str) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine")
        await bed.configure("other", **OTHERS[row])
        async with bed.replica():
            await bed.until_injected("mine")
            await asyncio.sleep(400)
            assert await bed.bundles_of("other") == [b""]

    play(act)


def test_a_configuration_that_is_labelled_later_gets_it() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine", inject="false")
        async with bed.replica() as one:
            await until_shown(one)
            await bed.client.patch(VALIDATING, "mine", MergePatch({"metadata": {"labels": {INJECT_CA: "true"}}}))
            await bed.until_injected("mine")

    play(act)


def test_a_bundle_that_somebody_changes_or_clears_is_written_again() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine", hooks=2)
        async with bed.replica():
            await bed.until_injected("mine")
            foreign = b64encode(b"-----BEGIN CERTIFICATE-----").decode()
            for operation in (
                {"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"},
                {"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": foreign},
                {"op": "add", "path": "/webhooks/-", "value": webhook("mine-more")},
            ):
                await bed.client.patch(VALIDATING, "mine", JsonPatch([operation]))
                await bed.until_injected("mine")
            assert len(await bed.bundles_of("mine")) == 3

    play(act)


def test_what_the_user_wrote_beside_the_bundle_stays() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine", policy="Ignore")
        before = await bed.client.get(VALIDATING, "mine")
        async with bed.replica():
            await bed.until_injected("mine")
            after = await bed.client.get(VALIDATING, "mine")
            del after["webhooks"][0]["clientConfig"]["caBundle"]
            assert after["webhooks"] == before["webhooks"]
            assert after["metadata"]["labels"] == before["metadata"]["labels"]

    play(act)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_written_twice(seed: int) -> None:
    async def act(bed: Bed) -> None:
        for name in ("a", "b"):
            await bed.configure(name, hooks=2)
        async with bed.replica() as one, bed.replica() as other:
            for name in ("a", "b"):
                await bed.until_injected(name)
            versions = [(await bed.client.get(VALIDATING, name))["metadata"]["resourceVersion"] for name in ("a", "b")]
            done = len(one.gate.writes()) + len(other.gate.writes())
            await asyncio.sleep(3600)
            now = [(await bed.client.get(VALIDATING, name))["metadata"]["resourceVersion"] for name in ("a", "b")]
            assert now == versions
            assert len(one.gate.writes()) + len(other.gate.writes()) == done

    play(act, seed=seed)


def test_somebody_who_always_writes_another_bundle_is_not_fought_without_rest() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine")
        async with bed.replica() as one:
            await bed.until_injected("mine")
            before = len(one.gate.writes())
            for _ in range(600):
                change = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "eA=="}]
                await bed.client.patch(VALIDATING, "mine", JsonPatch(change))
                await asyncio.sleep(0.1)
            assert len(one.gate.writes()) - before < 130
            await bed.until_injected("mine")

    play(act)


# Granted rights


def seed_rights(verb: str, path: str) -> bool:
    """What the published ClusterRole does not grant: it has list and patch of validating configurations alone."""
    return "mutatingwebhook" in path or (verb == "WATCH" and "webhookconfigurations" in path)


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return sorted(one.getMessage() for one in caplog.records if one.name.startswith("kedge.controllers"))


def test_the_published_rights_are_enough(caplog: pytest.LogCaptureFixture) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("before")
        await bed.configure("mutating", MutatingWebhookConfiguration)
        async with bed.replica(refuses=seed_rights) as one:
            await bed.until_injected("before")
            await bed.configure("later")
            await bed.until_injected("later")
            await asyncio.sleep(3600)
            assert await bed.bundles_of("mutating", MutatingWebhookConfiguration) == [b""]
            assert len([ask for ask in one.gate.refused if ask.startswith("WATCH")]) <= 4
            assert len([ask for ask in one.gate.refused if ask.startswith("GET")]) <= 20

    with caplog.at_level(logging.WARNING, logger="kedge.controllers"):
        play(act)
    said = logged(caplog)
    assert len(said) == 2, said
    assert said[0].startswith("mutatingwebhookconfigurations.admissionregistration.k8s.io may not be listed")
    assert "grant the verbs list, watch and patch" in said[0]
    assert said[1].startswith("validatingwebhookconfigurations.admissionregistration.k8s.io may not be watched")


REFUSED: dict[str, Callable[[str, str], bool]] = {
    "no list, no watch": lambda verb, path: verb in ("GET", "WATCH") and "webhookconfigurations" in path,
    "no patch": lambda verb, _: verb == "PATCH",
}


@pytest.mark.parametrize("row", REFUSED)
def test_without_rights_the_server_still_has_its_certificate(row: str, caplog: pytest.LogCaptureFixture) -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("mine")
        async with bed.replica(refuses=REFUSED[row]) as one:
            await until_shown(one)
            await asyncio.sleep(600)
            assert await bed.bundles_of("mine") == [b""]

    with caplog.at_level(logging.WARNING, logger="kedge.controllers"):
        play(act)
    said = logged(caplog)
    assert 1 <= len(said) <= 2
    assert all("grant the verb" in one for one in said)


# The gauge


def test_the_gauge_shows_the_policy_of_each_webhook() -> None:
    async def act(bed: Bed) -> None:
        await bed.configure("a", policy="Ignore", inject="false")
        await bed.configure("b", MutatingWebhookConfiguration)
        await bed.configure("c", namespace="other")
        async with bed.replica(injects=False) as one:
            await asyncio.sleep(5)
            name = "kube_validating_webhook_failure_policy"
            assert [line for line in one.metrics().splitlines() if line.startswith(name)] == [
                f'{name}{{policy="Fail",type="ValidatingWebhook",webhook="a-0.grafana.com"}} 0.0',
                f'{name}{{policy="Ignore",type="ValidatingWebhook",webhook="a-0.grafana.com"}} 1.0',
                f'{name}{{policy="Fail",type="MutatingWebhook",webhook="b-0.grafana.com"}} 1.0',
                f'{name}{{policy="Ignore",type="MutatingWebhook",webhook="b-0.grafana.com"}} 0.0',
            ]
            await bed.client.delete(VALIDATING, "a")
            await until_so(lambda: _without(one.metrics, "a-0"))

    play(act)


async def _without(metrics: Callable[[], str], name: str) -> bool:
    return name not in metrics()


# Small parts


def test_a_patch_changes_only_the_bundles_that_differ() -> None:
    wanted = b64encode(b"ca").decode()
    hooks = [{"name": "a", "clientConfig": {"caBundle": wanted}}, {"name": "b", "clientConfig": {}}]
    one = _configuration(hooks)
    assert lacks_bundle(one, b"ca")
    path = "/webhooks/1/clientConfig/caBundle"
    assert list(bundle_patch(one, b"ca").operations) == [{"op": "add", "path": path, "value": wanted}]
    assert not lacks_bundle(_configuration(hooks[:1]), b"ca")
    assert not lacks_bundle(_configuration([]), b"ca")


def _configuration(hooks: list[dict[str, Any]]) -> ValidatingWebhookConfiguration:
    import msgspec

    body = {"metadata": {"labels": {INJECT_CA: "true"}}, "webhooks": hooks}
    return msgspec.convert(body, ValidatingWebhookConfiguration)


@pytest.mark.parametrize(
    ("namespaces", "selector"),
    [
        (("shop",), f"{INJECT_NAMESPACE}=shop"),
        (("b", "a"), f"{INJECT_NAMESPACE} in (a,b)"),
        ((), INJECT_NAMESPACE),
    ],
)
def test_one_operator_may_have_several_namespaces(namespaces: tuple[str, ...], selector: str) -> None:
    assert of_namespaces(namespaces) == selector
