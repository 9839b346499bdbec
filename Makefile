# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Needs Linux (or macOS), Python 3.11+ and make. `make kube` also needs Go, unless the binaries are there already.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes
BENCH  := .venv-bench/bin
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test lint kube bench soak docs wheel lock clean

help:            ## what there is
	@grep -E '^[a-z]+: .*##|^[a-z]+: +##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-7s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.run  ## the main job on the embedded default; no Kubernetes needed
	$(BIN)/kedge demo

test: $(VENV)/.dev  ## every test; those that need the real control plane skip without it (make kube)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.dev  ## formatting, lint, types (code and tests), layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml --no-logo

kube: $(VENV)/.dev  ## the real control plane for tests: found, or built once into a user cache (needs Go)
	PYTHONPATH=tools $(BIN)/python -m controlplane build

bench: $(BENCH)/.done  ## ratios against other clients, in one run
	PYTHONPATH=tools:bench $(BENCH)/python -m kedgebench $(ARGS)

soak: $(VENV)/.dev  ## what is too long for every change: many more examples of every property, every mutation, 50 kills
	KEDGE_PROPERTIES=soak $(BIN)/python -m pytest -m hypothesis --timeout 0 $(ARGS)
	KEDGE_SEEDS=$${KEDGE_SEEDS:-5000} $(BIN)/python -m pytest tests/simulate/test_rolling.py tests/simulate/test_staging.py $(ARGS)
	PYTHONPATH=tests $(BIN)/python -m mutations
	KEDGE_KILLS=$(or $(KEDGE_KILLS),50) $(BIN)/python -m pytest tests/fleet/test_kills.py

docs: $(VENV)/.docs  ## the documentation site, in site/
	$(BIN)/zensical build

wheel: $(VENV)/.run  ## dist/kedge-*.whl
	$(BIN)/hatchling build -t wheel

lock:            ## resolve requirements/*.txt anew
	$(PYTHON) tools/lock.py

clean:           ## remove what make made here (not the user cache)
	rm -rf $(VENV) .venv-bench .venv-lock .cache dist site

$(BIN)/python:
	$(PYTHON) tools/check_python.py
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: requirements/run.txt requirements/build.txt pyproject.toml | $(BIN)/python
	@echo "installing Kedge into $(VENV) ..."
	$(PIP) -r requirements/run.txt -r requirements/build.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	@echo "installing the development tools into $(VENV) ..."
	$(PIP) -r requirements/dev.txt
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.run
	$(PIP) -r requirements/docs.txt
	@touch $@

$(BENCH)/.done: requirements/bench.txt pyproject.toml
	$(PYTHON) -m venv .venv-bench
	@echo "installing the clients to compare with into .venv-bench ..."
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt -r requirements/build.txt
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
