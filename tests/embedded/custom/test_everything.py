"""A kind whose schema says everything: what is good, what is bad, and what may stay bad."""

import pytest

from embedded.custom.definitions import served_by
from embedded.custom.everything import BAD, DEFINITION, GOOD, UPDATES, whole
from kedge.embedded.custom.crd import with_defaults
from kedge.embedded.custom.served_versions import served_kinds

CUSTOM = served_by(served_kinds(with_defaults(DEFINITION))[0]).custom
LOOKED_AT_EVERY_TIME = ("an object inside without a kind", "an object inside with a bad kind")
TAKEN = {
    *("steady stays", "steady is new", "a set in another order", "a bad text stays", "a bad item stays"),
    *("a bad keyed item stays, another comes", "a bad member stays", "a broken rule stays", "what occurs twice stays"),
    *("what occurs twice comes again", "a bad alternative stays", "a wrong type stays"),
}


def taken_in(spec: object) -> dict[str, object]:
    return CUSTOM.with_defaults(CUSTOM.pruned(whole("x", spec)))


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_wrong_with_what_is_good(name: str) -> None:
    assert CUSTOM.problems(taken_in(GOOD[name])) == []


@pytest.mark.parametrize("name", BAD)
def test_something_is_wrong_with_what_is_bad(name: str) -> None:
    assert CUSTOM.problems(taken_in(BAD[name]))


@pytest.mark.parametrize("name", BAD)
def test_what_is_bad_may_stay_as_it_is(name: str) -> None:
    obj = taken_in(BAD[name])
    assert bool(CUSTOM.problems(obj, obj)) == (name in LOOKED_AT_EVERY_TIME)


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_taken_if_it_makes_nothing_worse(name: str) -> None:
    update = UPDATES[name]
    assert (CUSTOM.problems(taken_in(update.new), taken_in(update.old)) == []) == (name in TAKEN)


def test_every_cause_names_a_field_and_a_reason() -> None:
    for spec in BAD.values():
        for cause in CUSTOM.problems(taken_in(spec)):
            assert cause.field == "<nil>" or cause.field.startswith("spec.")
            assert cause.reason.startswith("FieldValue")
