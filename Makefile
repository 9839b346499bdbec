# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Needs Linux (or macOS), Python 3.11+ and make. `make kube` also needs Go, unless the binaries are there already.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# The lock files name every dependency.
LOCKED := --quiet --disable-pip-version-check --require-hashes --no-deps
PIP    := $(BIN)/python -m pip install $(LOCKED)
BENCH  := .venv-bench/bin
PYTEST  = $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder
WORKERS ?= 3

unexport PYTHONDONTWRITEBYTECODE  # every process would compile everything anew

.DEFAULT_GOAL := help
.PHONY: help demo test test-real record lint kube bench soak flaky durations docs wheel lock clean

help:            ## what there is
	@grep -E '^[a-z-]+: .*##|^[a-z-]+: +##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | while IFS="$$(printf '\t')" read -r name text; do printf '  make %-9s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.run  ## the main job on the embedded default; no Kubernetes needed
	$(BIN)/kedge demo

test: $(VENV)/.dev  ## what every change must pass; what needs the real control plane skips without it (make kube)
	$(PYTEST) --core $(ARGS)

test-real: $(VENV)/.dev  ## all tests on the real control plane; holds what was recorded of it to what it says now
	KEDGE_KILLS=$(or $(KEDGE_KILLS),10) $(PYTEST) -m "real or recorded" --real live $(ARGS)
	@$(if $(ARGS),,PYTHONPATH=tests:tools $(BIN)/python -m support.recording)

record: $(VENV)/.dev  ## the same, and writes down what it says
	$(PYTEST) -m recorded --real record $(ARGS)

lint: $(VENV)/.dev  ## formatting, lint, types (code and tests), layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml --no-logo

kube: $(VENV)/.dev  ## the real control plane for tests: found, or built once into a user cache (needs Go)
	PYTHONPATH=tools $(BIN)/python -m controlplane build

bench: $(BENCH)/.done  ## ratios against other clients, in one run
	PYTHONPATH=tools:bench $(BENCH)/python -m kedgebench $(ARGS)

soak: $(VENV)/.dev  ## what is too long for every change: 5,000 seeds and examples, every mutation, 450 kills; goes on where it was
	PYTHONPATH=tests $(BIN)/python -m simulate.soak
	KEDGE_PROPERTIES=soak $(BIN)/python -m pytest -m hypothesis --timeout 0 $(ARGS)
	$(BIN)/python -m pytest -m slow $(ARGS)
	PYTHONPATH=tests $(BIN)/python -m mutations
	PYTHONPATH=tests $(BIN)/python -m mutations.generated
	KEDGE_KILLS=$(or $(KEDGE_KILLS),50) $(BIN)/python -m pytest tests/fleet/test_kills.py
	KEDGE_ZONE_KILLS=$(or $(KEDGE_ZONE_KILLS),200) $(BIN)/python -m pytest tests/real/test_zone_kills.py
	KEDGE_BATCH_KILLS=$(or $(KEDGE_BATCH_KILLS),200) $(BIN)/python -m pytest tests/real/test_batch_kills.py

flaky: $(VENV)/.dev  ## which tests on the real control plane fail sometimes: all of them, 20 times, in other orders
	PYTHONPATH=tools $(BIN)/python -m ci.flaky --target test-real $(ARGS)

durations: $(VENV)/.dev  ## write down how long the files of the last test run took: the longest go first
	PYTHONPATH=tests:tools $(BIN)/python -m support.scheduling

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
	$(BENCH)/python -m pip install $(LOCKED) -r requirements/bench.txt -r requirements/build.txt
	$(BENCH)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
