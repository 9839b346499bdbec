"""Hook calls: calls the webhooks of rollouts.

    outcome = await calls.call(hook, wake)   # None: it is still being called; `wake` is called when that has ended

Every attempt is a request of its own, within the webhook's time-out, and carries the id of the call in
`Idempotency-Key`. Redirects are answers and not followed. Promises that it never raises for what a webhook does, and
that nothing of its URL but the host is in what it gives back. A webhook that hangs holds up no rollout but those that
ask the same server (`pending_calls`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from yarl import URL

from kedge.controllers.pending_calls import PATIENCE, PendingCalls
from kedge.kube.connect.outbound import Call, Outbound, OutboundFailed, fetch_within
from kedge.plan.batching.hooks import Answered, HookCall, HookOutcome, Unanswered
from kedge.plan.text import cut

IDEMPOTENCY_KEY: Final = "Idempotency-Key"
_READ: Final = 4096
_SHOWN: Final = 200
_HIDDEN: Final = "…"
_SHORTEST_SECRET: Final = 4  # shorter ones hide nothing, and would be taken out of every word


class HookCalls:
    """Calls to webhooks."""

    def __init__(self, outbound: Outbound, *, patience: float = PATIENCE) -> None:
        """`patience` is how many seconds `call` waits for an answer itself."""
        self._outbound = outbound
        self._pending: PendingCalls[HookOutcome] = PendingCalls(patience=patience)

    async def call(self, hook: HookCall, wake: Callable[[], None]) -> HookOutcome | None:
        """What came of this attempt; None if it takes longer."""
        try:
            url = URL(hook.url)
        except ValueError:
            url = URL()
        if url.scheme not in {"http", "https"} or not url.host:
            return Unanswered("its url is no http:// or https:// URL")
        return await self._pending.result(
            (hook.id, hook.attempt), partial(self._made, hook, url), wake, server=url.host
        )

    async def close(self) -> None:
        """End all calls."""
        await self._pending.close()

    async def _made(self, hook: HookCall, url: URL) -> HookOutcome:
        headers = {"Content-Type": "application/json", IDEMPOTENCY_KEY: hook.id}
        call = Call(hook.method, hook.url, headers, hook.body, name=f"webhook {hook.name}")
        try:
            answer = await fetch_within(self._outbound, call, hook.timeout)
        except OutboundFailed as error:
            return Unanswered(_without_secrets(str(error).removeprefix(f"{call}: "), url))
        return Answered(answer.status, _excerpt(answer.body, url))


def _excerpt(body: bytes, url: URL) -> str:
    """How an answer begins, on one line."""
    text = body[:_READ].decode(errors="replace")
    readable = "".join(char if char.isprintable() else " " for char in text)
    return cut(" ".join(_without_secrets(readable, url).split()), _SHOWN)


def _without_secrets(text: str, url: URL) -> str:
    """The text without what a URL holds beside its host: many servers repeat what they were asked."""
    parts = (str(url), url.raw_path_qs, url.raw_query_string, url.query_string, *url.query.values())
    parts += (url.raw_path, url.path, url.user or "", url.password or "", url.raw_user or "", url.raw_password or "")
    for part in sorted(set(parts), key=len, reverse=True):
        text = text.replace(part, _HIDDEN) if len(part) >= _SHORTEST_SECRET else text
    return text
