"""Wait text: what a cluster of an aligned workload waits for, in a sentence. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kedge.plan.aligning.aim import AlignCode
from kedge.plan.aligning.ledger import Member
from kedge.plan.aligning.turns import TurnCode
from kedge.plan.moving.wait import Wait
from kedge.plan.text import counted, listed, of_all


def wait_sentence(wait: Wait) -> str:
    """What a cluster waits for."""
    return _TURNS[TurnCode(wait.code)] if wait.code in _TURNS else _SENTENCES[AlignCode(wait.code)](wait)


def unfinished(member: Member, goal: int) -> str:
    """What is left to be done by a cluster that waits for nothing, and is to have so many pods of the template; or
    nothing."""
    report = member.report
    if not member.wanted and (report.pods or not member.stays):
        return f"its last {counted(report.pods, 'pod')} go"
    if not member.is_acknowledged:
        return "it has not reported yet that it acts on what was written last"
    if report.available < member.wanted or member.proven < goal:
        return f"{of_all(report.available, member.wanted, 'pod')} available"
    return ""


def _unacknowledged(_: Wait) -> str:
    return "it has not reported yet that it acts on what was written last, so it keeps what it holds"


def _unreachable(_: Wait) -> str:
    return "it is not heard from: it keeps what it holds of the budget, and gets no more"


def _suspended(_: Wait) -> str:
    return "its dispatching is suspended: it keeps what it holds of the budget, and gets no more"


def _overridden(_: Wait) -> str:
    return (
        "an override policy decides on its strategy, and the budget has no room for that, or it keeps its pods as they"
        " are: it keeps what it has; take the strategy out of the policy"
    )


def _paused(_: Wait) -> str:
    return "the workload is paused: no cluster is granted anything until it is resumed"


def _rolling(wait: Wait) -> str:
    return f"it replaces its pods with what it holds: {of_all(wait.numbers['updated'], wait.numbers['goal'], 'pod')}"


def _creating(wait: Wait) -> str:
    return f"its pods are being created: {of_all(wait.numbers['updated'], wait.numbers['goal'], 'pod')}"


def _budget_spent(wait: Wait) -> str:
    told, floor = wait.numbers, _floor(wait)
    limits = [f"at most {of_all(told['maxUnavailable'], told['replicas'], 'pod')} may be unavailable"]
    limits += [f"{told['maxSurge']} may be extra"] if told["maxSurge"] else []
    rule = ", and ".join(limits)
    if not wait.blockers and told["fewest"] <= floor:
        sure = f"only {told['fewest']} are sure to be available" if told["fewest"] else "none is sure to be available"
        return f"{rule}: {sure}, and {floor} have to be"
    holders = listed(one.key for one in wait.blockers) or "it"
    verb = "hold" if len(wait.blockers) > 1 else "holds"
    return f"{rule}: {holders} {verb} that until new pods there are available"


def _broken(wait: Wait) -> str:
    return (
        f"some pods do not work, and may work again: fewer than {counted(_floor(wait), 'pod')} could be left then;"
        " repair or delete them"
    )


def _unproven(wait: Wait) -> str:
    told = wait.numbers
    found, most = counted(told["unproven"], "pod"), told["maxUnavailable"] + told["maxSurge"]
    where = f" in {listed(one.key for one in wait.blockers)}" if wait.blockers else ""
    return f"{found}{where} may have the new template and not be available, and at most {most} may: they come first"


def _starting(wait: Wait) -> str:
    where = listed(one.key for one in wait.blockers)
    return (
        f"pods that do not work are given up once those in {where} have had time to become ready: 30 seconds and"
        " minReadySeconds, since their number last changed"
    )


def _no_room(wait: Wait) -> str:
    most = wait.numbers["replicas"] + wait.numbers["maxSurge"]
    return f"it is to get more replicas, and there may be {counted(most, 'pod')} at most: others go first"


def _too_few(wait: Wait) -> str:
    return f"it is to have fewer replicas, and {counted(_floor(wait), 'pod')} have to stay available: others come first"


def _kept_back(wait: Wait) -> str:
    return f"the partition lets {counted(wait.numbers['goal'], 'pod')} through here, and they are there"


def _recreates(wait: Wait) -> str:
    limit = of_all(wait.numbers["maxUnavailable"], wait.numbers["replicas"], "pod")
    return (
        f"its strategy takes all its pods away at once, and at most {limit} may be unavailable: use RollingUpdate,"
        " or raise maxUnavailable"
    )


def _floor(wait: Wait) -> int:
    return wait.numbers["replicas"] - wait.numbers["maxUnavailable"]


_SENTENCES: Final[Mapping[AlignCode, Callable[[Wait], str]]] = {
    AlignCode.unacknowledged: _unacknowledged,
    AlignCode.unreachable: _unreachable,
    AlignCode.suspended: _suspended,
    AlignCode.overridden: _overridden,
    AlignCode.paused: _paused,
    AlignCode.rolling: _rolling,
    AlignCode.creating: _creating,
    AlignCode.budget_spent: _budget_spent,
    AlignCode.broken: _broken,
    AlignCode.unproven: _unproven,
    AlignCode.starting: _starting,
    AlignCode.no_room: _no_room,
    AlignCode.too_few: _too_few,
    AlignCode.kept_back: _kept_back,
    AlignCode.recreates: _recreates,
}
_TURNS: Final[Mapping[str, str]] = {
    TurnCode.no_work: "Karmada has not written its Work yet",
    TurnCode.work_unseen: "its Work is new: Karmada has not reported yet that it is suspended",
    TurnCode.granted: "it was granted its next step: Karmada has not written that into its Work yet",
    TurnCode.let_through: "it is let through: it has not reported yet that it acts on what it was granted",
    TurnCode.closing: (
        "it acts on what it was granted, and is to be suspended again: Karmada has not reported yet that it is"
    ),
    TurnCode.taken_over: (
        "it was let through, and not by Kedge: Karmada has not suspended it yet, or it has not reported what it has"
    ),
}
"""Beside a Karmada, of a cluster in its turn, and before it begins."""
