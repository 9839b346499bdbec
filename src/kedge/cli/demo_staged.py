"""`kedge demo staged`: a release goes from staging over canaries to production; a bad one ends in staging.

A hub and six members run in this process, with the roles that run on real clusters; in real time or in virtual time,
where an hour takes no time. What is printed about clusters was observed on the clusters. What is printed about runs is
what their objects say. Anything unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import click
from rich.console import Console

from kedge.api.placement import ClusterResourcePlacement
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.api.times import parse_duration
from kedge.cli.demo_fleet import SELECTOR, DemoFleet
from kedge.cli.demo_stage import QUIET_PERIOD, TIMEOUT, DemoFailed
from kedge.cli.render import can_draw, console
from kedge.cli.runs import approve, roll_back_run, run_tree
from kedge.cli.targets import quiet_logs
from kedge.kube.clock import Clock, SystemClock
from kedge.plan.staging.run_story import RunStory, StageStory, tell_run
from kedge.plan.state import State
from kedge.plan.text import listed
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run as run_virtually

Approving: TypeAlias = Callable[[DemoFleet], Awaitable[bool]]
"""Asks the user whether production may get it."""

STAGING, CANARY, PRODUCTION = ("cluster-1",), ("cluster-2", "cluster-3"), ("cluster-4", "cluster-5", "cluster-6")
BEFORE_PRODUCTION: Final = (*STAGING, *CANARY)
EVERYONE: Final = (*BEFORE_PRODUCTION, *PRODUCTION)
LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    name: {"environment": stage}
    for stage, names in (("staging", STAGING), ("canary", CANARY), ("production", PRODUCTION))
    for name in names
}
NAME: Final = "crp"
SPEC: Final[Mapping[str, Any]] = {"resourceSelectors": [SELECTOR], "strategy": {"type": "External"}}
AT_ONCE: Final = ({"name": "everywhere", "labelSelector": {}, "maxConcurrency": "100%"},)
MESSAGE: Final = "the canaries are well"
_REAL_WAIT, _VIRTUAL_WAIT = "10s", "1h"
_APPROVED: Final = '{"type":"Approved","status":"True","reason":"tested","message":"%s","lastTransitionTime":"%s"'


def run(*, virtual: bool, wait: str | None, yes: bool) -> None:
    """Run the demo. Fails if anything unexpected happens."""
    wait = wait or (_VIRTUAL_WAIT if virtual else _REAL_WAIT)
    _check(wait)
    asks = _for_you if yes or not sys.stdin.isatty() else _ask_in_virtual_time if virtual else _ask_on_terminal

    async def telling() -> None:
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop, datetime.now(UTC)) if virtual else SystemClock()
        await StagedDemo(console(), clock=clock, rng=random.Random(), wait=wait, approving=asks).play()

    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        (run_virtually if virtual else asyncio.run)(telling())


def _check(wait: str) -> None:
    try:
        is_right = parse_duration(wait) > timedelta()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--wait") from None
    if not is_right:
        raise click.BadParameter(f"{wait} is no time to wait", param_hint="--wait")


def careful_stages(wait: str) -> list[dict[str, Any]]:
    """The stages of the page on staged updates."""
    return [
        _stage("staging", {"type": "TimedWait", "waitTime": wait}),
        _stage("canary", {"type": "Approval"}),
        _stage("production"),
    ]


def _stage(name: str, *after: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "labelSelector": {"matchLabels": {"environment": name}}, "afterStageTasks": list(after)}


class StagedDemo:
    """The demo, step by step."""

    def __init__(
        self,
        out: Console,
        *,
        clock: Clock,
        rng: random.Random,
        wait: str,
        approving: Approving,
        stages: list[dict[str, Any]] | None = None,
    ) -> None:
        self._wait = wait
        self._approving = approving
        self._stages = stages or careful_stages(wait)
        self._demo = DemoFleet(out, members=len(EVERYONE), clock=clock, rng=rng)
        self._seen = self._demo.seen

    async def play(self) -> None:
        async with self._demo.running():
            await self._join()
            async with self._demo.watching(ClusterResourcePlacement, ClusterStagedUpdateRun, ClusterApprovalRequest):
                await self._place()
                await self._release()
                await self._show_canaries()
                if not await self._ask():
                    return
                await self._finish()
                await self._release_badly()
                await self._take_back()

    # Steps

    async def _join(self) -> None:
        self._demo.heading("Six clusters join the fleet: one for staging, two canaries, three in production.")
        await self._demo.join(LABELS)

    async def _place(self) -> None:
        self._demo.heading("A Deployment is to run on all of them, with strategy External: a run has to move it.")
        await self._demo.create_app("app:1")
        await self._demo.hub.create(ClusterResourcePlacement, {"metadata": {"name": NAME}, "spec": SPEC})
        await asyncio.sleep(QUIET_PERIOD)
        self._expect_only("app:1")
        self._demo.say(
            f"For {QUIET_PERIOD:g} s nothing moved. Run release-1 takes app:1 everywhere, in a single stage:"
        )
        await self._start("release-1", "at-once", AT_ONCE)
        await self._expect_end("release-1", "app:1", len(EVERYONE))

    async def _release(self) -> None:
        gates = f"staging, a wait of {self._wait}, the canaries, an approval, production"
        self._demo.heading(f"A good release, app:2, goes carefully: {gates}.")
        await self._demo.set_image("app:2")
        await self._start("release-2", "careful", self._stages)
        if not await self._seen.until(self._waits, TIMEOUT):
            raise DemoFailed(f"release-2 does not wait after staging: {(await self._story('release-2')).why}")
        self._expect_only("app:2", *STAGING)
        self._draw(await self._story("release-2"))

    async def _show_canaries(self) -> None:
        wanted = parse_duration(self._wait)
        self._demo.heading(f"{self._wait} later the canaries get it, one after the other; and then somebody is asked.")
        if not await self._seen.until(self._asks, wanted.total_seconds() + TIMEOUT):
            raise DemoFailed(f"release-2 asks nobody: {(await self._story('release-2')).why}")
        self._expect_waited(wanted)
        await asyncio.sleep(QUIET_PERIOD)
        self._expect_only("app:2", *BEFORE_PRODUCTION)
        self._draw(await self._story("release-2"))

    async def _ask(self) -> bool:
        self._demo.heading("Only a person can let it into production.")
        self._demo.note("That is one line:")
        self._demo.command(f"kedge approve release-2 canary -m '{MESSAGE}'")
        self._demo.note("or, with nothing but kubectl:")
        said = _APPROVED % (MESSAGE, "'$(date -u +%FT%TZ)'") + ',"observedGeneration":1}'
        self._demo.command(
            "kubectl patch clusterapprovalrequests release-2-canary --subresource=status --type=merge -p "
            f"""'{{"status":{{"conditions":[{said}]}}}}'"""
        )
        self._demo.out.print()
        if not await self._approving(self._demo):
            await asyncio.sleep(QUIET_PERIOD)
            self._expect_only("app:2", *BEFORE_PRODUCTION)
            self._demo.say(f"Then it stays like that: {listed(PRODUCTION)} still run app:1.")
            return False
        now = self._demo.clock.now()
        self._demo.say(await approve(self._demo.hub, "release-2", "canary", message=MESSAGE, now=now))
        return True

    async def _finish(self) -> None:
        await self._expect_end("release-2", "app:2", len(EVERYONE))
        self._expect_one_at_a_time()
        if not (await self._stage_story("release-2", "canary")).approved:
            raise DemoFailed("release-2 does not say who approved it")
        self._draw(await self._story("release-2"))
        self._demo.say("The run keeps who said yes, when and why.")

    async def _release_badly(self) -> None:
        self._demo.heading("A bad release, app:bad: its pods never become ready.")
        await self._demo.set_image("app:bad")
        await self._start("release-3", "careful")
        self._demo.say("A cluster that takes more than half a minute says what it waits for:")
        if not await self._seen.until(self._is_held_up, TIMEOUT):
            raise DemoFailed(f"release-3 does not say why it stands still: {(await self._story('release-3')).why}")
        self._expect_only("app:bad", *STAGING)
        self._draw(await self._story("release-3"))
        self._demo.say(f"It has not left staging: {listed((*CANARY, *PRODUCTION))} never saw app:bad.")

    async def _take_back(self) -> None:
        self._demo.heading("The way back is a run too, which nobody has to approve.")
        self._seen.restart()
        said = await roll_back_run(self._demo.hub, "release-3")
        self._demo.command("kedge rollback release-3")
        self._demo.say(said)
        await self._expect_end("release-3-rollback", "app:2", len(EVERYONE))
        self._expect_only("app:bad", *STAGING)
        self._draw(await self._story("release-3-rollback"))

    # What is expected

    async def _waits(self) -> bool:
        return (await self._stage_story("release-2", "staging")).until is not None

    async def _asks(self) -> bool:
        stage = await self._stage_story("release-2", "canary")
        return stage.done == stage.clusters and "waits for approval" in stage.why

    async def _is_held_up(self) -> bool:
        return bool((await self._stage_story("release-3", "staging")).why)

    async def _expect_end(self, run: str, image: str, clusters: int) -> None:
        async def there() -> bool:
            return (await self._story(run)).is_done and self._seen.are_available(image, clusters)

        if not await self._seen.until(there, TIMEOUT):
            raise DemoFailed(f"{image} is not available on {clusters} clusters: {(await self._story(run)).why}")

    def _expect_only(self, image: str, *clusters: str) -> None:
        given = self._seen.with_image(image)
        if given != list(clusters):
            raise DemoFailed(f"{image} was to be on {listed(clusters) or 'no cluster'}, and was on {listed(given)}")

    def _expect_waited(self, wanted: timedelta) -> None:
        done = max(self._seen.available_at[name, "app:2"] for name in STAGING)
        waited = min(self._seen.updated_at[name, "app:2"] for name in CANARY) - done
        if waited < wanted.total_seconds():
            raise DemoFailed(f"the canaries got app:2 {waited:.1f} s after staging had it, and {wanted} were to pass")

    def _expect_one_at_a_time(self) -> None:
        if self._seen.most_unavailable > 1:
            raise DemoFailed(f"{self._seen.most_unavailable} clusters were unavailable at once, and one may be")
        self._demo.say("Never were two clusters unavailable at once.")

    # Acting and reading

    async def _start(self, run: str, strategy: str, stages: Any = None) -> None:
        """Create a run, and its strategy if its stages are given."""
        hub = self._demo.hub
        if stages is not None:
            body = {"metadata": {"name": strategy}, "spec": {"stages": list(stages)}}
            await hub.create(ClusterStagedUpdateStrategy, body)
        spec = {"placementName": NAME, "stagedRolloutStrategyName": strategy}
        await hub.create(ClusterStagedUpdateRun, {"metadata": {"name": run}, "spec": spec})

    async def _story(self, run: str) -> RunStory:
        return tell_run(await self._demo.hub.get(ClusterStagedUpdateRun, run))

    async def _stage_story(self, run: str, stage: str) -> StageStory:
        stages = (await self._story(run)).stages
        return next((one for one in stages if one.name == stage), StageStory(stage, State.waiting, 0, 1))

    # Printing

    def _draw(self, story: RunStory) -> None:
        out = self._demo.out
        self._demo.command(f"kedge status {story.name}", run_tree(story, self._demo.clock.now(), drawn=can_draw(out)))


# Who is asked

_QUESTION: Final = "   Is app:2 to go into production? [Y/n] "


async def _for_you(show: DemoFleet) -> bool:
    show.say("Nobody is asked here, so it is approved for you.")
    return True


async def _ask_in_virtual_time(show: DemoFleet) -> bool:
    """Ask while virtual time stands still."""
    show.out.print(_QUESTION, end="")
    return _is_yes(sys.stdin.readline())


async def _ask_on_terminal(show: DemoFleet) -> bool:
    """Ask while the fleet goes on. Not in a thread: one that waits for input cannot be stopped."""
    loop, answered = asyncio.get_running_loop(), asyncio.Event()
    show.out.print(_QUESTION, end="")
    loop.add_reader(sys.stdin.fileno(), answered.set)
    try:
        await answered.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return _is_yes(sys.stdin.readline())


def _is_yes(line: str) -> bool:
    return line.strip().lower() in ("", "y", "yes") and line != ""
