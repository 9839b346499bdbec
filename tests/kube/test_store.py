"""A store and its indexes always agree."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from kedge.kube.store import Store

Tags = frozenset[str]
KEYS = st.tuples(st.sampled_from(["", "x"]), st.sampled_from(["a", "b", "c"]))
TAGS = st.frozensets(st.sampled_from(["red", "blue", "green"]))
PUTS_AND_REMOVALS = st.lists(st.tuples(KEYS, st.none() | TAGS))


def tags(found: Tags) -> Iterable[str]:
    return found


@given(PUTS_AND_REMOVALS)
def test_an_index_finds_exactly_the_objects_it_names(steps: list[tuple[tuple[str, str], Tags | None]]) -> None:
    store: Store[Tags] = Store({"tag": tags})
    model: dict[tuple[str, str], Tags] = {}
    for key, value in steps:
        if value is None:
            assert store.remove(key) == model.pop(key, None)
        else:
            assert store.put(key, value) == model.get(key)
            model[key] = value
        for tag in ("red", "blue", "green"):
            found = sorted(map(sorted, store.by("tag", tag)))
            assert found == sorted(sorted(item) for item in model.values() if tag in item)
        assert set(store.values("tag")) == set().union(*model.values())
    assert set(store.keys()) == set(model)
    assert len(store) == len(model)
