# Wattmix. `make demo` and `make test` are all a newcomer needs; `make help` lists the rest.

PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8501
DB     ?=
BIN     = $(VENV)/bin
TWO     = --numprocesses 2 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test test-all lint bench screenshots lock clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# Two environments of one lock each: running the product needs no test tools.
$(VENV)/.hub: pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Wattmix needs Python 3.11 or newer; name one with PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.hub requirements-test.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.lock
	@touch $@

demo: $(VENV)/.hub  ## the dashboard on demo data, at http://127.0.0.1:8501 (PORT=, DB=)
	$(BIN)/wattmix demo --port $(PORT) $(if $(DB),--db $(DB))

test: $(VENV)/.test  ## every test but the long forms
	$(BIN)/python -m pytest -m "not network and not slow" $(TWO) $(ARGS)

test-all: $(VENV)/.test  ## the long forms too, and installs from the package registry
	$(BIN)/python -m pytest $(TWO) $(ARGS)

lint: $(VENV)/.test  ## ruff, mypy, the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.test  ## measured speeds beside their peers (ARGS=ingest|nodes|agent|engines|pages|split)
	$(BIN)/python -m tests.bench.run $(ARGS)

screenshots: $(VENV)/.test  ## every page in light and dark, into screenshots/
	$(BIN)/python -m tests.e2e.screenshots

lock:  ## pin the dependencies anew: names, versions, hashes
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra hub pyproject.toml --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--extra test --constraint requirements.lock --no-emit-package wattmix pyproject.toml --output-file requirements-test.lock

clean:  ## remove what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
