"""The list of mutations keeps up with the code. Whether rows notice them is for `python -m mutations` to show."""

import ast
from collections import Counter

import pytest

from mutations.list import HEADINGS, MUTATIONS, SOURCE, Mutation

CONTRACT = SOURCE.parents[1] / "tests" / "contract"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_has_its_place_in_the_code_exactly_once(mutation: Mutation) -> None:
    source = (SOURCE / "embedded" / mutation.file).read_text()
    assert source.count(mutation.old) == 1


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutated_module_is_still_python(mutation: Mutation) -> None:
    source = (SOURCE / "embedded" / mutation.file).read_text()
    assert ast.parse(mutation.applied_to(source)).body


def test_a_place_that_is_not_clear_is_refused() -> None:
    mutation = Mutation("create", "nothing is made", "writing.py", "make", "leave", ("test_create.py",))
    for source in ("take", "make, make"):
        with pytest.raises(LookupError, match=r"nothing is made: writing.py has its old text . times, not once"):
            mutation.applied_to(source)


def test_each_has_a_name_of_its_own() -> None:
    assert [name for name, count in Counter(mutation.name for mutation in MUTATIONS).items() if count > 1] == []


def test_there_are_enough_of_them_and_none_twice() -> None:
    assert len({(mutation.file, mutation.old, mutation.new) for mutation in MUTATIONS}) == len(MUTATIONS) >= 30


def test_every_heading_has_one() -> None:
    assert {mutation.heading for mutation in MUTATIONS} == set(HEADINGS)


def test_the_rows_that_are_to_notice_are_there() -> None:
    assert [row for mutation in MUTATIONS for row in mutation.rows if not (CONTRACT / row).is_file()] == []
