"""Resolve requirements/*.txt anew: exact versions with hashes, for every platform, naming no address.

Run it with `make lock` after changing a dependency in pyproject.toml. The groups are held to the versions of
`run`, so that what is tested is what is shipped.
"""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "requirements"
UV = "uv==0.13.7"
GROUPS = ("build", "dev", "docs", "bench")
EXTRAS = {"dev": ("--extra", "notify")}  # what is optional is tested


def compile_lock(python: Path, name: str, *args: str) -> None:
    print(f"resolving requirements/{name}.txt ...", flush=True)
    command: list[str | Path] = [python, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
    command += ["--no-emit-index-url", "--python-version", "3.11", "--custom-compile-command", "make lock"]
    subprocess.run([*command, *args, "--output-file", LOCKS / f"{name}.txt"], check=True, cwd=ROOT)


def main() -> None:
    home = ROOT / ".venv-lock"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", UV], check=True)
    compile_lock(python, "run", "pyproject.toml", *sys.argv[1:])
    for group in GROUPS:
        source = ["--group", group] if group in ("build", "docs") else ["pyproject.toml", "--group", group]
        compile_lock(
            python, group, *source, *EXTRAS.get(group, ()), "--constraint", "requirements/run.txt", *sys.argv[1:]
        )


if __name__ == "__main__":
    main()
