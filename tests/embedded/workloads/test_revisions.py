"""Which revision a set is at."""

from __future__ import annotations

from kedge.api.apps import ControllerRevision
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Template
from kedge.embedded.workloads.revisions import Choice, choose, content, in_order, template_in

A, B, C = ({"spec": {"containers": [{"name": "main", "image": image}]}} for image in "abc")


def revision(number: int, template: Template) -> ControllerRevision:
    return ControllerRevision(metadata=ObjectMeta(name=f"web-{number}"), revision=number, data=content(template))


def test_a_revision_brings_its_template_back() -> None:
    assert template_in(revision(1, A)) == A
    assert content(A)["spec"]["template"]["$patch"] == "replace"
    assert template_in(ControllerRevision()) == {}


def test_a_new_template_is_the_next_revision() -> None:
    assert choose([], content(A)) == Choice(None, 1)
    assert choose([revision(1, A), revision(4, B)], content(C)) == Choice(None, 5)


def test_the_newest_revision_stays_what_it_is() -> None:
    newest = revision(2, B)
    assert choose([revision(1, A), newest], content(B)) == Choice(newest, 2)


def test_a_template_that_was_there_before_gets_its_revision_back_under_a_new_number() -> None:
    old = revision(1, A)
    assert choose([old, revision(2, B)], content(A)) == Choice(old, 3)


def test_revisions_are_in_order_of_their_numbers() -> None:
    assert [one.revision for one in in_order([revision(3, A), revision(1, B), revision(2, C)])] == [1, 2, 3]
