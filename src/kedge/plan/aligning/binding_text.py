"""Binding text: where a binding and its clusters stand, in a line each, and in sentences."""

from __future__ import annotations

from kedge.plan.aligning.binding_story import BindingClusterStory, BindingStory
from kedge.plan.state import State
from kedge.plan.text import counted, of_all


def binding_line(story: BindingStory) -> str:
    """A binding in a line."""
    why = f": {story.why}" if story.why else ""
    number = counted(len(story.clusters), "cluster")
    if not story.is_aligned:
        done = sum(one.state is State.available for one in story.clusters)
        return f"{story.resource}, a copy in {number}, {done} of them done{why}"
    moved = of_all(story.total("updated"), story.goal, "pod")
    available, pods = story.total("available"), story.total("pods")
    limits = f"available {available} (>= {story.fewest}), pods {pods} (<= {story.most})"
    shares = f"in flight {story.in_flight} of {story.budget}, proven {story.total('proven')}"
    return f"{story.resource} in {number}: {moved} updated, {limits}; {shares}{why if _says_more(story) else ''}"


def _says_more(story: BindingStory) -> bool:
    """Whether the clusters, which follow in lines of their own, do not say why."""
    return bool(story.problems) or not any(one.why for one in story.clusters)


def cluster_line(story: BindingStory, cluster: BindingClusterStory) -> str:
    """A cluster in a line."""
    if not story.is_aligned:
        return ": ".join(part for part in (cluster.state.value, cluster.why) if part)
    counts = f"{of_all(cluster.updated, cluster.goal, 'pod')} updated, {cluster.available} available"
    shares = f"granted {cluster.granted or 'nothing'}, in flight {cluster.in_flight}, proven {cluster.proven}"
    return f"{counts}; {shares}{f': {cluster.why}' if cluster.why else ''}"


def explained_binding(story: BindingStory) -> list[str]:
    """Why a binding is where it is."""
    lines = [f"{story.title}: {binding_line(story)}"]
    if story.is_aligned:
        lines.append(
            f"all clusters together keep at least {story.fewest} of {counted(story.replicas, 'pod')} available, and"
            f" have at most {story.most}"
        )
    lines += story.problems
    for cluster in story.clusters:
        lines += explained_cluster(story, cluster)
    return lines


def explained_cluster(story: BindingStory, cluster: BindingClusterStory) -> list[str]:
    """Why a cluster is where it is."""
    lines = [f"{cluster.name}: {cluster_line(story, cluster)}"]
    if not story.is_aligned or cluster.granted is None:
        return lines
    spent, held = cluster.granted, cluster.in_flight
    lines.append(
        f"  it may take {counted(spent.unavailable, 'pod')} away and add {spent.surge}; {held.unavailable} and"
        f" {held.surge} of that count against the budget until it proves its new pods"
    )
    if cluster.written > cluster.acknowledged:
        lines.append(
            f"  write {cluster.written} is not acknowledged: its last report is about {_number(cluster.acknowledged)}"
        )
    return lines


def _number(acknowledged: int) -> str:
    return f"write {acknowledged}" if acknowledged else "none of them"
