# Start with `make demo` and `make test`. Both need only Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One more worker than cores, because the browser tests mostly wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
# With --require, `make test` fails if OpenCL, a browser, PyTorch or JAX was not tested.
PARTS ?=
TESTED_PARTS := build/tested-parts.json

# Containers often forbid Python to keep bytecode; then every process of the tests would compile all imports anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test setup lint types tests thorough napari docs pages pictures table dist clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo ## decompose and filter sample images, write the results to demo/
	$(BIN)/python examples/demo.py

test: setup ## run lint, types and tests in parallel, as CI does
	$(MAKE) --no-print-directory -j 3 lint types tests
	@$(BIN)/python tests/parts.py $(TESTED_PARTS) $(PARTS)

setup: $(VENV)/.dev ## create the development environment in .venv

lint: $(VENV)/.dev ## check style and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## check types with mypy --strict
	$(BIN)/mypy

# Each worker would start a thread of OpenBLAS for each core.
tests thorough: export OPENBLAS_NUM_THREADS := 1

tests: $(VENV)/.dev ## run pytest on all cores
	$(BIN)/pytest -n $(WORKERS) --max-worker-restart 0 --tested-parts=$(TESTED_PARTS)

thorough: $(VENV)/.dev ## run all combinations and thousands of random arrays where make test runs some; about an hour
	UNDULA_TESTS=thorough $(BIN)/pytest -n $(WORKERS) --max-worker-restart 0 -m thorough

napari: plugins/napari/.venv/.test ## test the napari plugin without a screen, in an environment of its own
	cd plugins/napari && QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest

docs: $(VENV)/.dev ## build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

pages: $(VENV)/.dev ## regenerate the pages and images of docs/ that are computed by the code
	$(BIN)/python tools/make_docs.py
	$(BIN)/python tools/make_experiments.py
	$(BIN)/python tools/make_gallery.py
	$(BIN)/python tools/make_libraries.py
	$(BIN)/python tools/tutorials.py
	$(BIN)/python tools/history.py
	$(BIN)/python tools/dataflow.py
	$(BIN)/python tools/diagrams.py

pictures: $(VENV)/.dev ## take the screenshots of Studio for docs/ in Chromium
	$(BIN)/pytest tests/studio/test_browser.py -k "views or dialogs or fits or tasks or scans or volumes" --screenshots docs/images/studio

table: $(VENV)/.dev ## regenerate the table of wavelets
	$(BIN)/python tools/make_table.py

dist: ## build the sdist and the wheel, check them, and run the README's examples from both
	$(PYTHON) tools/release.py build install

clean: ## remove the environment and all generated files
	rm -rf $(VENV) plugins/napari/.venv demo dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Undula needs Python 3.11 or newer; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# uv installs within seconds what takes pip more than a minute. It does not read pip's settings, so pip is tried next.
define install
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile uv && \
		$(BIN)/uv pip install --quiet --python $(BIN)/python -e '.[$(1)]' || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[$(1)]'
endef

plugins/napari/.venv/.test: pyproject.toml plugins/napari/pyproject.toml
	$(PYTHON) -m venv plugins/napari/.venv
	plugins/napari/.venv/bin/python -m pip install --quiet --disable-pip-version-check -e . -e 'plugins/napari[test]'
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(call install,demo)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(call install,dev)
	@touch $@ $(VENV)/.demo
