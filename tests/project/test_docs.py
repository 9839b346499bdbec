"""The documentation is true."""

import re
import tomllib
from pathlib import Path

import pytest

from kedge.api.crds import KINDS
from kedge.plan.availability.kinds import KINDS as TRACKED
from support import tutorial

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ALL = [*PAGES, *sorted(ROOT.glob("*.md"))]
ROOMS = "|".join(sorted(path.name for path in (ROOT / "src" / "kedge").iterdir() if path.is_dir()))


def test_the_tutorial_shows_the_controller_that_is_tested() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text()
    shown = re.search(r"^class Stamper.*?(?=\n\nasync def main)", page, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert shown.group() in Path(tutorial.__file__).read_text()


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    named = re.findall(r"(?<![\w./<-])(?:src|tests|tools|bench|docs|requirements)/[\w./-]*\w(?![\w*<])", text)
    named += [f"src/kedge/{path}" for path in re.findall(rf"`((?:{ROOMS})/[\w./-]*)`", text)]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_module_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"(?<![\w./\"-])kedge(?:\.[a-z_]+)+(?![\w/])", page.read_text())
    modules = [ROOT / "src" / name.replace(".", "/") for name in named if not name.startswith("kedge.dev")]
    assert [path for path in modules if not path.is_dir() and not path.with_suffix(".py").exists()] == []


def test_the_page_on_architecture_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    house = [*(ROOT / "src" / "kedge").iterdir(), *(ROOT / "src" / "kedge" / "plan").iterdir()]
    rooms = [path for path in house if path.is_dir() or path.parent.name == "kedge"]
    assert [
        path.name for path in rooms if "__" not in path.name and path.suffix != ".typed" and path.name not in page
    ] == []


def test_the_page_on_dependencies_names_what_is_installed_and_nothing_else() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    shown = re.findall(r"^\| ([\w-]+).*\|$", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert sorted(name.lower() for name in shown[1:]) == sorted(re.split(r"[>;= ]", name)[0] for name in wanted)


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
