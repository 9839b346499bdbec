"""Columns of custom kinds: what `kubectl get` shows of them."""

from typing import Any

from contract.backend import Api
from contract.crds import TABLE, Own, own, version

COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
    {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1, "description": "when"},
]


async def table(kind: Own, name: str = "") -> dict[str, Any]:
    answer = await kind.api.ask("GET", kind.path(name), accept=TABLE)
    assert answer.code == 200, answer
    found: dict[str, Any] = answer.body
    return found


async def test_a_table_has_the_columns_of_the_definition(api: Api) -> None:
    async with own(api, version(additionalPrinterColumns=COLUMNS)) as kind:
        found = (await table(kind))["columnDefinitions"]
        assert [(one["name"], one["type"], one["format"], one["priority"]) for one in found] == [
            ("Name", "string", "name", 0),
            ("Size", "integer", "", 0),
            ("Ready", "string", "", 0),
            ("Since", "date", "", 1),
        ]
        assert found[1]["description"] == "Custom resource definition column (in JSONPath format): .spec.size"
        assert found[3]["description"] == "when"


async def test_rows_have_a_cell_for_each_column(api: Api) -> None:
    async with own(api, version(additionalPrinterColumns=COLUMNS[:2])) as kind:
        ready = [{"type": "Done", "status": "False"}, {"type": "Ready", "status": "True"}]
        await kind.make("a", spec={"size": 3}, status={"conditions": ready})
        await kind.make("b", spec={})
        rows = [row["cells"] for row in (await table(kind))["rows"]]
        assert rows == [["a", 3, "True"], ["b", None, None]]


async def test_one_object_is_a_table_too(api: Api) -> None:
    async with own(api, version(additionalPrinterColumns=COLUMNS[:1])) as kind:
        await kind.make(spec={"size": 3})
        found = await table(kind, "x")
        assert found["kind"] == "Table"
        assert [row["cells"] for row in found["rows"]] == [["x", 3]]


async def test_a_kind_without_columns_shows_its_age(api: Api) -> None:
    async with own(api) as kind:
        await kind.make()
        found = await table(kind)
        assert [one["name"] for one in found["columnDefinitions"]] == ["Name", "Age"]
        assert found["rows"][0]["cells"][1].endswith("s")


async def test_the_descriptions_of_name_and_age_are_those_of_metadata(api: Api) -> None:
    async with own(api) as kind:
        name, age = (one["description"] for one in (await table(kind))["columnDefinitions"])
        assert name.startswith("Name must be unique within a namespace. Is required when creating resources")
        assert name.endswith("names#names")
        assert age.startswith("CreationTimestamp is a timestamp representing the server time")
        assert age.endswith("#metadata")


CELLS: tuple[tuple[str, str, Any], ...] = (
    ("integer", ".spec.size", 3),
    ("integer", ".spec.text", None),
    ("number", ".spec.share", 1.5),
    ("boolean", ".spec.flag", True),
    ("string", ".spec.text", "hi"),
    ("string", ".spec.size", "3"),
    ("string", ".spec.flag", "true"),
    ("string", ".spec.list", '["a","b"]'),
    ("string", ".spec.list[1]", "b"),
    ("string", ".spec.list[*]", "a"),
    ("string", ".spec.map", '{"k":"v"}'),
    ("string", ".spec.missing", None),
    ("string", r".metadata.labels.kedge\.dev/app", "web"),
    ("date", ".spec.text", "<invalid>"),
)


async def test_a_cell_is_what_the_path_finds_in_the_type_of_the_column(api: Api) -> None:
    spec = {"size": 3, "share": 1.5, "flag": True, "text": "hi", "list": ["a", "b"], "map": {"k": "v"}}
    columns = [{"name": f"C{index}", "type": kind, "jsonPath": path} for index, (kind, path, _) in enumerate(CELLS)]
    async with own(api, version(additionalPrinterColumns=columns)) as kind:
        await kind.make(spec=spec, metadata={"labels": {"kedge.dev/app": "web"}})
        cells = (await table(kind))["rows"][0]["cells"][1:]
        assert list(zip(columns, cells, strict=True)) == [
            (column, shown) for column, (_, _, shown) in zip(columns, CELLS, strict=True)
        ]
