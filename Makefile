# Every target sets up what it needs: a machine with Python >= 3.11 and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)
LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
JOBS ?= 2

.PHONY: setup demo up test lint format lock clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

# `make demo MODEL=file.onnx PROFILE="x=1x3x48x32:1x3x48x320:1x3x48x1280"` takes your own model.
demo: $(STAMP)
	@$(BIN)/atoll demo $(if $(MODEL),"$(MODEL)") $(if $(PROFILE),--profile "$(PROFILE)")

up: $(STAMP)
	@$(BIN)/atoll up

test: $(STAMP)
	$(BIN)/pytest -n $(JOBS) --dist loadfile $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Resolves anew what pyproject.toml asks for; commit the result.
lock: $(BIN)/uv
	$(BIN)/uv pip compile $(LOCK_FLAGS) --upgrade --extra worker --extra dev pyproject.toml -o requirements.lock
	$(MAKE) setup

clean:
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "atoll needs Python >= 3.11, and $(PYTHON) is not: name another, as in make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments: install them (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BIN)/uv: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(STAMP): pyproject.toml requirements.lock | $(BIN)/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
