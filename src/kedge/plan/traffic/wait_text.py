"""Wait text: what traffic waits for, in a sentence. Nothing is decided on it."""

from __future__ import annotations

from kedge.plan.moving.wait import Wait
from kedge.plan.text import counted, first_few
from kedge.plan.traffic.routes import MANAGER, TrafficCode


def wait_text(wait: Wait) -> str:
    """The sentence of a wait with a `TrafficCode`."""
    reported = first_few(one.reported for one in wait.blockers)
    match wait.code:
        case TrafficCode.route_missing:
            return f"there is no {wait.unit}: create it"
        case TrafficCode.route_unread:
            return f"{wait.unit}: {reported}"
        case TrafficCode.recording:
            return f"the weights of {wait.unit} are recorded before they are changed"
        case TrafficCode.not_accepted:
            told = first_few(f"{one.key}: {one.reported}" for one in wait.blockers)
            return f"{wait.unit} is not in effect yet: {told}"
        case TrafficCode.contested:
            return _contested(wait)
        case _:
            return reported


def _contested(wait: Wait) -> str:
    who = wait.blockers[0].key if wait.blockers else "somebody else"
    return (
        f"{who} sets the weights of {wait.unit}, too: they were set to {wait.numbers['percent']} percent again "
        f"{counted(wait.numbers['corrections'], 'time')}; have it ignore what the field manager {MANAGER} writes"
    )
