"""Own strategies: what override policies say of the strategy of single clusters.

Such a cluster gets the release by its own numbers, all at once, when the budget of the whole has room for them. One
that is paused by itself, or whose kind would replace no pods then, keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kedge.plan.aligning.interpreter import NotAligned, aim_of, get_rolling_strategy, unpaused
from kedge.plan.aligning.ledger import OwnStrategy
from kedge.plan.aligning.overriding import Overridden
from kedge.plan.fields import Object


def own_strategies(
    template: Object, made: Mapping[str, Overridden], wanted: Mapping[str, int], problems: list[str]
) -> dict[str, OwnStrategy]:
    """The strategy of each cluster that has one of its own. What is wrong with them is added to the problems."""
    found: dict[str, OwnStrategy] = {}
    for name, replicas in wanted.items():
        if name not in made:
            continue
        try:
            own = _own_strategy(template, made[name], replicas)
        except NotAligned as error:
            problems.append(f"cluster {name}: {error}")
            own = OwnStrategy(is_held=True)
        if own is not None:
            found[name] = own
    return found


def _own_strategy(template: Object, made: Overridden, replicas: int) -> OwnStrategy | None:
    usual, there = get_rolling_strategy(template), get_rolling_strategy(made.obj)
    if there.paused and not usual.paused:
        return OwnStrategy(is_held=True)
    if not made.sets_strategy:
        return None
    aim = aim_of(unpaused(made.obj), replicas)
    has_partition = there.partition != usual.partition
    return OwnStrategy(aim.unavailable, aim.surge, aim.partition if has_partition else None)


def paused_clusters(names: Iterable[str], made: Mapping[str, Overridden], *, is_paused: bool) -> set[str]:
    """The clusters that are to stop with what they have begun, if the workload is paused, or they are by themselves."""
    return {name for name in names if (_is_paused(made[name]) if name in made else is_paused)}


def _is_paused(made: Overridden) -> bool:
    return bool(get_rolling_strategy(made.obj).paused)
