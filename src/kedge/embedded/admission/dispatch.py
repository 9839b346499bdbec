"""Dispatch: asks webhooks about a write: mutating ones one after the other, then validating ones all at once.

    changed = await admission.mutate(asked, accept)    # the object as mutating webhooks want it
    await admission.validate(asked)

A webhook that says no ends the write with its words. One that cannot be asked ends it too, unless its failurePolicy is
Ignore. Mutating webhooks with reinvocationPolicy IfNeeded are asked once more if one after them changed the object.
Both methods give the warnings of webhooks to `warn`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.api.admission import ResourceName
from kedge.embedded import json_patch, statuses
from kedge.embedded.admission import matching, review
from kedge.embedded.admission.attributes import Attributes
from kedge.embedded.admission.calls import CallFailed, WebhookCalls
from kedge.embedded.admission.conditions import ConditionFailed, conditions_hold
from kedge.embedded.admission.equivalents import Equivalents
from kedge.embedded.admission.review import InvalidResponse, Verdict
from kedge.embedded.admission.webhook import ConfiguredWebhooks, Webhook
from kedge.embedded.generator import Generator
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.statuses import Refused
from kedge.embedded.store import Store
from kedge.kube.codec import Untyped

Accept: TypeAlias = Callable[[Untyped], Untyped]  # a patched object -> the one it is decoded to, with defaults
Warn: TypeAlias = Callable[[str], None]
_NAMESPACES = Kind(NAMESPACES)


class Invocation(Struct, frozen=True):
    """A webhook that is to be asked, and about what: in the version that its rule names."""

    hook: Webhook
    resource: ResourceName
    request: Untyped
    """Of the AdmissionReview."""


class Admission:
    """The admission of one server's writes. `life` changes when the server stops, and when it starts again."""

    def __init__(
        self,
        store: Store,
        generator: Generator,
        *,
        equivalents: Equivalents,
        calls: WebhookCalls,
        life: Callable[[], int],
    ) -> None:
        self.webhooks = ConfiguredWebhooks(store)
        self._store = store
        self._generator = generator
        self._equivalents = equivalents
        self._calls = calls
        self._life = life

    async def mutate(self, asked: Attributes, accept: Accept, warn: Warn) -> Untyped | None:
        """The object as the mutating webhooks leave it."""
        hooks = self.webhooks.mutating
        if not hooks or matching.is_exempt(asked):
            return asked.obj
        obj, again = await self._mutate(hooks, asked, accept, warn)
        if again:
            obj, _ = await self._mutate(again, asked.with_object(obj), accept, warn)
        return obj

    async def validate(self, asked: Attributes, warn: Warn) -> None:
        """Refuse the write if a validating webhook does."""
        hooks = self.webhooks.validating
        if not hooks or matching.is_exempt(asked):
            return
        found = [self._invocation(hook, asked) for hook in hooks]
        calls = [self._verdict(one, asked, warn, mutating=False) for one in found if one is not None]
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _mutate(
        self, hooks: tuple[Webhook, ...], asked: Attributes, accept: Accept, warn: Warn
    ) -> tuple[Untyped | None, tuple[Webhook, ...]]:
        """The object after these webhooks, and those to be asked again."""
        again: tuple[Webhook, ...] = ()
        before: tuple[Webhook, ...] = ()
        for hook in hooks:
            invocation = self._invocation(hook, asked)
            if invocation is None:
                continue
            verdict = await self._verdict(invocation, asked, warn, mutating=True)
            changed = self._patched(invocation, verdict, asked, accept) if verdict else asked.obj
            if changed != asked.obj:
                again, before = (*again, *before), ()
                asked = asked.with_object(changed)
            if hook.may_be_asked_again:
                before = (*before, hook)
        return asked.obj, again

    def _invocation(self, hook: Webhook, asked: Attributes) -> Invocation | None:
        """How a webhook is asked; None if the write does not concern it."""
        if not matching.object_matches(hook.object_selector, asked):
            return None
        if (resource := matching.matched_resource(hook, asked, self._equivalents.of)) is None:
            return None
        if not self._namespace_matches(hook, asked):
            return None
        kind, shown = self._equivalents.kind_in(asked, resource), self._equivalents.converted(asked, resource)
        request = review.request_of(shown, self._generator.uid(), resource, kind)
        try:
            return Invocation(hook, resource, request) if conditions_hold(hook, request) else None
        except ConditionFailed as error:
            raise statuses.forbidden(asked.served, asked.name, str(error)) from None

    def _namespace_matches(self, hook: Webhook, asked: Attributes) -> bool:
        selector = hook.namespace_selector
        if not asked.namespace or selector == type(selector)():
            return True
        if asked.is_of_namespace and not asked.subresource and asked.obj is not None:
            return selector.matches(matching.labels_of(asked.obj))
        found = self._store.all(_NAMESPACES).get(asked.namespace)
        if found is None:
            raise statuses.not_found(NAMESPACES, asked.namespace)
        return selector.matches(found.labels)

    async def _verdict(self, one: Invocation, asked: Attributes, warn: Warn, *, mutating: bool) -> Verdict | None:
        """What a webhook says; None if it cannot be asked and that does not matter. Raises its refusal."""
        hook = one.hook
        if asked.dry_run and not hook.supports_dry_run:
            raise statuses.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        try:
            verdict = await self._ask(one, mutating=mutating)
        except CallFailed as error:
            if hook.ignores_failures:
                return None
            raise statuses.server_failure(f'failed calling webhook "{hook.name}": {error}') from None
        for text in verdict.warnings:
            warn(text)
        if not verdict.allowed:
            raise review.denial(hook, verdict)
        return verdict

    async def _ask(self, one: Invocation, *, mutating: bool) -> Verdict:
        sent = review.review_of(one.hook, one.request)
        try:
            answer = await self._answer(one.hook, sent)
            return review.verdict_in(answer, sent, one.request["uid"], mutating=mutating)
        except InvalidResponse as error:
            raise CallFailed(f"received invalid webhook response: {error}") from None
        except (ValueError, RecursionError) as error:
            raise CallFailed(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from None

    async def _answer(self, hook: Webhook, sent: bytes) -> bytes:
        """What a webhook sends back. A server that stopped meanwhile goes on with nothing, whatever it was."""
        life = self._life()
        try:
            answer = await self._calls.ask(hook, sent)
        except CallFailed:
            self._refuse_after(life)
            raise
        self._refuse_after(life)
        return answer

    def _refuse_after(self, life: int) -> None:
        if self._life() != life:
            raise Refused(503, "ServiceUnavailable", "the server stopped")

    def _patched(self, one: Invocation, verdict: Verdict, asked: Attributes, accept: Accept) -> Untyped | None:
        """The object after the patch of a webhook."""
        if not verdict.patch:
            return asked.obj
        if verdict.patch_type != "JSONPatch":
            why = f'unsupported patch type "{verdict.patch_type}"'
            raise statuses.server_failure(f'failed calling webhook "{one.hook.name}": {why}')
        operations = _operations(verdict.patch)
        if not operations:
            return asked.obj
        if asked.obj is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise statuses.server_failure(f'admission webhook "{one.hook.name}" {why}')
        try:
            made = json_patch.json_patch(one.request["object"], operations)
            return accept(self._equivalents.converted_back(made, asked, one.resource))
        except Refused as refused:
            raise statuses.server_failure(str(refused)) from None


def _operations(patch: bytes) -> list[Untyped]:
    try:
        return msgspec.json.decode(patch, type=list[Untyped])
    except ValueError as error:
        raise statuses.server_failure(str(error)) from None
