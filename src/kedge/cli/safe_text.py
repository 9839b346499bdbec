"""Safe text: what others wrote, made fit for a terminal.

A member's agent writes what is said about its objects. A hostile one could write escape sequences, which a terminal
obeys, line breaks that imitate our own lines, or messages without end. So text is printed on one line, with control
characters in their escaped form, and cut where it gets too long; a cut text says so. JSON and YAML keep everything.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from kedge.plan.explaining.cluster_places import ClusterPlace
from kedge.plan.explaining.placed_objects import PlacedObject
from kedge.plan.explaining.story import Story
from kedge.plan.state import State

LONGEST: Final = 1000
"""Characters of one message."""
LONGEST_NAME: Final = 320
"""Characters of the kind, namespace and name of an object: an API server allows no more than about this."""
MOST_OBJECTS: Final = 1000
"""Objects of one cluster."""

_BREAK: Final = re.compile(r"\s*[\t-\r\x1c-\x1f\x85\u2028\u2029]\s*")
"""Tabs and line breaks, with the space around them."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""C0 and C1 controls, and characters that are invisible or reorder the text around them."""


def printable(text: str) -> str:
    """The text on one line, its control characters escaped: `\\x1b` instead of the escape character."""
    return _CONTROL.sub(_escaped, _BREAK.sub(" ", text)) if _CONTROL.search(text) else text


def escape_json(text: str) -> str:
    """JSON text whose control characters are escaped, also those that JSON would allow as they are."""
    return _CONTROL.sub(lambda found: found.group() if found.group() == "\n" else f"\\u{ord(found.group()):04x}", text)


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, cut to this many characters. A cut text says how much is missing."""
    left_out = len(text) - longest
    return text if left_out <= 0 else f"{text[:longest]}… ({left_out} more characters: -o json shows all)"


def bounded(story: Story) -> Story:
    """The story with every message cut, and with no more objects of a cluster than anyone reads."""
    return replace(
        story,
        why=shortened(story.why),
        places=tuple(map(bounded_place, story.places)),
        unpicked=tuple(map(shortened, story.unpicked)),
        passed_over=tuple(map(shortened, story.passed_over)),
        doubt=shortened(story.doubt),
    )


def bounded_place(place: ClusterPlace) -> ClusterPlace:
    """One cluster of a story, likewise."""
    things = tuple(PlacedObject(shortened(one.what, LONGEST_NAME), one.state, _cut_why(one)) for one in place.things)
    left_out = len(things) - MOST_OBJECTS
    if left_out > 0:
        things = (
            *things[:MOST_OBJECTS],
            PlacedObject(f"and {left_out} more objects", State.unknown, "-o json shows all"),
        )
    return replace(place, why=shortened(place.why), things=things)


def _cut_why(thing: PlacedObject) -> str:
    """Its message, which mostly begins with the object's name: that is cut as the name is, so that they still agree."""
    if len(thing.what) > LONGEST_NAME and thing.why.startswith(thing.what):
        return shortened(shortened(thing.what, LONGEST_NAME) + thing.why.removeprefix(thing.what))
    return shortened(thing.why)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
