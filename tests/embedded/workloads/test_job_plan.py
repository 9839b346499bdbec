"""What a Job does next: cases, and whole lives of Jobs that crash after any write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.embedded.workloads.job_plan import JobPlan, JobPod, Progress, WantedJob, plan

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def tries(text: str) -> tuple[JobPod, ...]:
    """Pods in short: `a b! cS dF e~-`: ready; ! not ready, S succeeded, F failed, ~ terminating; - untracked."""
    return tuple(_try(word) for word in text.split())


def _try(word: str) -> JobPod:
    tracked = not word.endswith("-")
    mark = word.rstrip("-")[1:]
    return JobPod(
        uid=word[0],
        name=word[0],
        phase={"S": "Succeeded", "F": "Failed", "!": "Pending"}.get(mark, "Running"),
        ready=mark == "",
        terminating=mark == "~",
        tracked=tracked,
        ended=NOW - timedelta(hours=1) if mark in ("S", "F") else None,
    )


def names(found: tuple[JobPod, ...]) -> str:
    return "".join(one.name for one in found)


def said(progress: Progress) -> list[str]:
    return [f"{one.type}={one.status} {one.reason}" for one in progress.conditions]


def test_a_new_job_starts_as_many_pods_as_it_may() -> None:
    found = plan(WantedJob(parallelism=3, completions=2), Progress(), (), NOW)
    assert (found.create, found.progress.active, found.progress.started) == (2, 2, NOW)


def test_pods_that_are_over_are_noted_first_and_counted_when_they_are_untracked() -> None:
    asked = WantedJob(parallelism=2, completions=3)
    noted = plan(asked, Progress(), tries("aS bF c"), NOW)
    assert (noted.progress.uncounted_succeeded, noted.progress.uncounted_failed) == (("a",), ("b",))
    assert (noted.progress.succeeded, noted.progress.failed, names(noted.untrack)) == (0, 0, "ab")
    counted = plan(asked, noted.progress, tries("aS- bF- c"), NOW)
    assert (counted.progress.succeeded, counted.progress.failed, counted.progress.uncounted) == (1, 1, ())


def test_a_job_is_complete_when_everything_is_counted_and_gone() -> None:
    asked = WantedJob(completions=1)
    found = plan(asked, Progress(), tries("aS"), NOW)
    assert said(found.progress) == ["SuccessCriteriaMet=True CompletionsReached"]
    done = plan(asked, found.progress, tries("aS-"), NOW)
    assert said(done.progress)[1:] == ["Complete=True CompletionsReached"]
    assert (done.progress.completed, done.progress.succeeded) == (NOW, 1)
    assert plan(asked, done.progress, tries("aS-"), NOW) == JobPlan(done.progress)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (WantedJob(backoff_limit=0), "BackoffLimitExceeded"),
        (WantedJob(backoff_limit=5, deadline=timedelta(seconds=10)), "DeadlineExceeded"),
    ],
)
def test_a_job_that_fails_stops_its_pods_and_says_so_when_they_are_gone(asked: WantedJob, reason: str) -> None:
    before = Progress(started=NOW - timedelta(seconds=10))
    found = plan(replace(asked, parallelism=2, completions=2), before, tries("aF b"), NOW)
    assert (names(found.stop), names(found.untrack), found.create) == ("b", "ab", 0)
    assert said(found.progress) == [f"FailureTarget=True {reason}"]
    assert (found.progress.active, found.progress.terminating) == (0, 1)
    waits = plan(asked, found.progress, tries("aF- b~-"), NOW)
    assert said(waits.progress) == said(found.progress)
    done = plan(asked, waits.progress, tries("aF-"), NOW)
    assert said(done.progress)[1:] == [f"Failed=True {reason}"]
    assert (done.progress.failed, done.progress.completed) == (2, None)


def test_restarts_in_place_count_against_the_limit() -> None:
    asked = WantedJob(backoff_limit=2, restarts_in_place=True)
    assert not plan(asked, Progress(), (replace(_try("a"), restarts=1),), NOW).stop
    assert plan(asked, Progress(), (replace(_try("a"), restarts=2),), NOW).stop


def test_a_pod_is_not_replaced_before_its_failure_has_cooled_down() -> None:
    failed = replace(_try("aF"), ended=NOW - timedelta(seconds=4))
    found = plan(WantedJob(), Progress(started=NOW), (failed,), NOW)
    assert (found.create, found.look_again) == (0, NOW + timedelta(seconds=6))
    assert plan(WantedJob(), found.progress, (failed,), NOW + timedelta(seconds=6)).create == 1
    twice = (failed, replace(failed, uid="b", name="b"))
    assert plan(WantedJob(), Progress(started=NOW), twice, NOW).look_again == NOW + timedelta(seconds=16)


def test_a_suspended_job_gives_up_its_pods_uncounted_and_goes_on_where_it_was() -> None:
    asked = WantedJob(parallelism=2, completions=2, suspended=True)
    found = plan(asked, Progress(started=NOW), tries("a b!"), NOW)
    assert (names(found.drop), found.progress.failed, found.progress.uncounted) == ("ab", 0, ())
    assert said(found.progress) == ["Suspended=True JobSuspended"]
    assert found.progress.started is None
    later = NOW + timedelta(minutes=5)
    resumed = plan(replace(asked, suspended=False), found.progress, (), later)
    assert said(resumed.progress) == ["Suspended=False JobResumed"]
    assert (resumed.create, resumed.progress.started) == (2, later)


def test_less_parallelism_drops_pods_uncounted() -> None:
    found = plan(WantedJob(parallelism=1, completions=5), Progress(started=NOW), tries("a! b c"), NOW)
    assert (names(found.drop), found.progress.active, found.progress.failed) == ("ab", 1, 0)


def test_without_completions_one_success_ends_it_once_the_others_are_over() -> None:
    asked = WantedJob(parallelism=2, completions=None)
    found = plan(asked, Progress(started=NOW), tries("aS b"), NOW)
    assert (found.create, said(found.progress)) == (0, [])
    assert said(plan(asked, found.progress, tries("aS- bS"), NOW).progress) == [
        "SuccessCriteriaMet=True CompletionsReached"
    ]


def test_a_pod_somebody_deletes_has_failed_unless_one_waits_how_it_ends() -> None:
    assert plan(WantedJob(), Progress(started=NOW), tries("a~"), NOW).progress.uncounted_failed == ("a",)
    waits = plan(WantedJob(replaces_only_failed=True), Progress(started=NOW), tries("a~"), NOW)
    assert (waits.progress.uncounted_failed, waits.create, waits.progress.terminating) == ((), 0, 1)


def test_a_job_on_its_way_out_lets_its_pods_go() -> None:
    assert names(plan(WantedJob(leaving=True), Progress(started=NOW), tries("a bS"), NOW).untrack) == "ab"


class Life:
    """A Job and its pods; each write may be the last before a crash."""

    def __init__(self, asked: WantedJob) -> None:
        self.asked = asked
        self.progress = Progress()
        self.pods: dict[str, JobPod] = {}
        self.born = 0
        self.ended = {"Succeeded": 0, "Failed": 0}

    def turn(self, now: datetime, writes: int) -> None:
        found = plan(self.asked, self.progress, self.pods.values(), now)
        steps: list[Callable[[], None]] = [lambda: self._write(found.progress)]
        steps += [lambda one=one: self._delete(one.uid) for one in found.stop]  # type: ignore[misc]
        steps += [lambda one=one: self._untrack(one.uid) for one in found.untrack]  # type: ignore[misc]
        steps += [self._create] * found.create
        for step in steps[:writes]:
            step()

    def end(self, uid: str, phase: str, now: datetime) -> None:
        pod = self.pods[uid]
        if not pod.is_over:
            self.pods[uid] = replace(pod, phase=phase, ready=False, ended=now)
            self.ended[phase] += 1

    def _write(self, progress: Progress) -> None:
        assert progress.active <= max(self.asked.parallelism, self.progress.active)
        self.progress = progress

    def _create(self) -> None:
        self.born += 1
        self.pods[str(self.born)] = JobPod(str(self.born), str(self.born), phase="Running", ready=True)
        assert sum(one.is_active for one in self.pods.values()) <= self.asked.parallelism

    def _delete(self, uid: str) -> None:
        self.pods[uid] = replace(self.pods[uid], terminating=True)

    def _untrack(self, uid: str) -> None:
        pod = replace(self.pods[uid], tracked=False)
        if pod.terminating:
            del self.pods[uid]
        else:
            self.pods[uid] = pod


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 3), st.data())
def test_every_pod_is_counted_once_whatever_crashes(
    parallelism: int, completions: int, limit: int, data: st.DataObject
) -> None:
    life = Life(WantedJob(parallelism=parallelism, completions=completions, backoff_limit=limit))
    now = NOW
    for _ in range(60):
        now += timedelta(hours=1)
        life.turn(now, writes=data.draw(st.integers(0, 4)))
        for uid in [uid for uid, pod in life.pods.items() if pod.is_active]:
            if data.draw(st.booleans()):
                life.end(uid, data.draw(st.sampled_from(["Succeeded", "Succeeded", "Failed"])), now)
    for _ in range(30):
        now += timedelta(hours=1)
        life.turn(now, writes=100)
        for uid in [uid for uid, pod in life.pods.items() if pod.is_active]:
            life.end(uid, "Succeeded", now)
    assert life.progress.is_finished
    assert life.progress.succeeded + life.progress.failed == life.born
    # A pod that is to be stopped counts as failed, even if it gets to its end before it is.
    assert life.progress.succeeded <= life.ended["Succeeded"]
    kinds = [one.type for one in life.progress.conditions]
    assert kinds in (["SuccessCriteriaMet", "Complete"], ["FailureTarget", "Failed"])
    assert (kinds[-1] == "Complete") == (life.progress.succeeded >= completions)
    assert kinds[-1] != "Failed" or life.progress.failed > limit
