"""Listed: the mutants that no test can notice, each with the reason; and those that no test notices yet.

`equivalent.txt` has the former by reason: a line that begins with `# ` is the reason of the names that follow. Of the
latter, `unnoticed.txt`, there should be none: each is a decision that could be wrong and nobody would notice. Both keep
a sample from failing for what is known. `python -m mutations.generated --note` writes the second anew; the whole run
also says which names are no longer those of any mutant, since the code has changed.

`sample.txt` has the tests that notice the mutants of a sample, so that a test run need not look for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

EQUIVALENT_FILE = Path(__file__).with_name("equivalent.txt")
UNNOTICED_FILE = Path(__file__).with_name("unnoticed.txt")
SAMPLE_FILE = Path(__file__).with_name("sample.txt")


def with_reasons(text: str) -> dict[str, str]:
    """The reason of each mutant that is listed."""
    reason, found = "", {}
    for line in filter(None, text.splitlines()):
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif not reason or line in found:
            raise ValueError(f"{line!r} has no reason, or is there twice")
        else:
            found[line] = reason
    return found


def write_unnoticed(names: Iterable[str]) -> None:
    UNNOTICED_FILE.write_text("".join(f"{name}\n" for name in names))


def write_sample(noticed_by: Mapping[str, str]) -> None:
    SAMPLE_FILE.write_text("".join(f"{name}\t{test}\n" for name, test in sorted(noticed_by.items())))


EQUIVALENT = with_reasons(EQUIVALENT_FILE.read_text())
UNNOTICED = frozenset(filter(None, UNNOTICED_FILE.read_text().splitlines()))
SAMPLE = dict(line.split("\t") for line in SAMPLE_FILE.read_text().splitlines())
