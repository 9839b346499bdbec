"""Establishing: names are taken, kinds are served, and one day removed."""

from typing import Any

from embedded.custom.definitions import Object, changed, definition, named
from kedge.embedded.custom import crd_status
from kedge.embedded.custom.crd import prepared_for_create, with_defaults

THEN, NOW = "2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z"


def new(crd: Object | None = None) -> Object:
    return prepared_for_create(with_defaults(definition() if crd is None else crd))


def other(**names: Any) -> Object:
    """Another CRD of the group, with its names taken."""
    crd = with_defaults(changed(definition(), names={"plural": "others", "kind": "Other", **names}))
    return crd_status.establish(prepared_for_create({**crd, "metadata": {"name": "others.crd.kedge.dev"}}), [], THEN)


def condition(crd: Object, kind: str) -> tuple[str, str, str]:
    found = next(one for one in crd["status"]["conditions"] if one["type"] == kind)
    return found["status"], found["reason"], found["message"]


def test_a_new_definition_is_not_served() -> None:
    assert new()["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert not crd_status.is_served(new())


def test_a_definition_gets_its_names_and_is_served() -> None:
    made = crd_status.establish(new(named(shortNames=["w"], categories=["all"])), [other()], NOW)
    assert crd_status.is_served(made)
    assert made["status"]["acceptedNames"] == made["spec"]["names"]
    assert condition(made, "NamesAccepted") == ("True", "NoConflicts", "no conflicts found")
    said = "the initial names have been accepted"
    assert condition(made, "Established") == ("True", "InitialNamesAccepted", said)


def test_one_that_is_established_stays_as_it_is() -> None:
    made = crd_status.establish(new(), [], THEN)
    assert crd_status.establish(made, [other()], NOW) is made


def test_a_kind_that_is_taken_is_not_accepted() -> None:
    made = crd_status.establish(new(), [other(kind="Widget", listKind="Others", singular="other")], NOW)
    assert not crd_status.is_served(made)
    assert condition(made, "NamesAccepted") == ("False", "KindConflict", '"Widget" is already in use')
    assert condition(made, "Established") == ("False", "NotAccepted", "not all names are accepted")
    assert made["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "",
        "listKind": "WidgetList",
    }


def test_short_names_may_not_be_anothers_plural() -> None:
    made = crd_status.establish(new(named(shortNames=["others", "w"])), [other()], NOW)
    assert condition(made, "NamesAccepted") == ("False", "ShortNamesConflict", '"others" is already in use')


def test_names_of_other_groups_are_free() -> None:
    rival = {**other(kind="Widget"), "spec": {**other()["spec"], "group": "other.dev"}}
    assert crd_status.is_served(crd_status.establish(new(), [rival], NOW))


def test_a_name_that_was_freed_can_be_had() -> None:
    waiting = crd_status.establish(new(), [other(kind="Widget", listKind="Others", singular="other")], THEN)
    made = crd_status.establish(waiting, [other()], NOW)
    assert crd_status.is_served(made)
    assert [one["lastTransitionTime"] for one in made["status"]["conditions"]] == [NOW, NOW]


def test_a_deleted_definition_waits_for_its_objects() -> None:
    made = crd_status.mark_terminating(crd_status.establish(new(), [], THEN), NOW)
    assert made["metadata"]["finalizers"] == [crd_status.FINALIZER]
    assert condition(made, "Terminating")[:2] == ("True", "InstanceDeletionPending")
    assert crd_status.mark_terminating(made, NOW) == made


def test_one_whose_objects_are_gone_is_held_by_nothing() -> None:
    going = crd_status.mark_terminating(crd_status.establish(new(), [], THEN), NOW)
    made = crd_status.with_objects_deleted(going, NOW)
    assert "finalizers" not in made["metadata"]
    assert condition(made, "Terminating") == ("False", "InstanceDeletionCompleted", "removed all instances")


def test_somebody_elses_finalizer_stays() -> None:
    held = {**new(), "metadata": {"name": "x", "finalizers": ["kedge.dev/mine"]}}
    made = crd_status.with_objects_deleted(crd_status.mark_terminating(held, NOW), NOW)
    assert made["metadata"]["finalizers"] == ["kedge.dev/mine"]
    assert condition(made, "Terminating")[1] == "NeverEstablished"
