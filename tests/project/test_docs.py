"""The documentation is true."""

import re
from pathlib import Path

import pytest

from kedge.api.crds import KINDS
from kedge.cli import tutorial
from kedge.plan.availability.kinds import KINDS as TRACKED

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def test_the_tutorial_shows_the_controller_that_is_tested() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    shown = re.search(r"^class Stamper.*?(?=\n\nasync def main)", page, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert shown.group() in Path(tutorial.__file__).read_text()


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES if page.name not in menu] == []


@pytest.mark.parametrize("kind", [kind.resource.kind for kind in KINDS])
def test_every_kind_is_in_the_table_of_kinds(kind: str) -> None:
    assert re.search(rf"^\|.*\b{kind}\b.*\|$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("kind", sorted(kind for _, kind in TRACKED))
def test_every_kind_that_can_be_available_is_on_the_page_of_availability(kind: str) -> None:
    assert re.search(rf"^\|.*\b{kind}\b.*\|$", (ROOT / "docs" / "availability.md").read_text(), re.MULTILINE)


def test_every_row_of_what_may_happen_to_a_run_names_tests_that_there_are() -> None:
    page = (ROOT / "docs" / "staged.md").read_text().partition("## What happens if, midway")[2]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", page, re.MULTILINE)
    split = next(number for number, (first, _) in enumerate(rows) if first == "what happens")
    promised, shown = rows[1:split], rows[split + 1 :]
    assert [first for first, _ in promised] == [first for first, _ in shown]
    written = "".join(path.read_text() for path in (ROOT / "tests" / "controllers" / "hub").glob("test_staged*.py"))
    named = [name for _, names in shown for name in re.findall(r"`(\w+)`", names)]
    assert [name for name in named if f"def test_{name}(" not in written] == []
