# Every target sets up what it needs: a machine with Python >= 3.11 and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV_VERSION := $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements.lock)
LOCK_FLAGS := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
JOBS ?= 2

.PHONY: setup demo up test test-models lint format lock clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

# `make demo MODEL=file.onnx PROFILE="x=1x3x48x32:1x3x48x320:1x3x48x1280"` takes your own model.
demo: $(STAMP)
	@$(BIN)/atoll demo $(if $(MODEL),"$(MODEL)") $(if $(PROFILE),--profile "$(PROFILE)")

up: $(STAMP)
	@$(BIN)/atoll up

test: $(STAMP)
	$(BIN)/pytest -n $(JOBS) --dist loadfile $(ARGS)

# Exports third parties' transformers anew, with random weights, and tests what was exported. torch is no dependency
# of atoll: it lives in an environment of its own (the CPU build, where the index has one).
MODELS := .models/venv
test-models: $(STAMP)
	test -x $(MODELS)/bin/python || $(PYTHON) -m venv $(MODELS)
	$(MODELS)/bin/python -m pip install --quiet torch==2.13.0
	$(MODELS)/bin/python -m pip install --quiet diffusers==0.42.1 transformers==5.24.0 x-transformers==2.31.10 \
	  onnx onnxscript onnxruntime numpy ml_dtypes pydantic pydantic-settings structlog psutil
	$(MODELS)/bin/python -m tests.fixtures.make_exports
	$(BIN)/pytest -n $(JOBS) --dist loadfile tests/conformance/test_exports.py

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
