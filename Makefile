# Two commands for a newcomer: `make demo` and `make test`. Both need Python 3.11+ and nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# One more than there are cores: tests of the page in the browser mostly wait.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')

.DEFAULT_GOAL := help
.PHONY: help demo test setup lint types tests thorough docs pages pictures table clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo ## decompose an image, print figures, write pictures to demo/
	$(BIN)/python examples/demo.py

test: setup ## lint, types and tests at the same time: what CI runs
	$(MAKE) --no-print-directory -j 3 lint types tests

setup: $(VENV)/.dev ## the environment for all that follows

lint: $(VENV)/.dev ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy --strict on src
	$(BIN)/mypy

tests: $(VENV)/.dev ## pytest on all cores
	$(BIN)/pytest -n $(WORKERS)

thorough: $(VENV)/.dev ## ten thousand arrays of integers on each backend, every scheme of every wavelet; about half an hour
	UNDULA_TESTS=thorough $(BIN)/pytest -n auto tests -k "bit_for_bit or test_integers or every_wavelet or plain_decoder or lossless or of_steps"

docs: $(VENV)/.dev ## build the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

pages: $(VENV)/.dev ## write the pages and pictures of docs/ that the code makes
	$(BIN)/python tools/make_docs.py
	$(BIN)/python tools/make_experiments.py
	$(BIN)/python tools/make_gallery.py
	$(BIN)/python tools/dataflow.py
	$(BIN)/python tools/diagrams.py

pictures: $(VENV)/.dev ## pictures of the Studio for docs/, taken by its tests in Chromium
	$(BIN)/pytest tests/studio/test_browser.py -k "views or dialogs or fits" --screenshots docs/images/studio

table: $(VENV)/.dev ## write the table of wavelets anew
	$(BIN)/python tools/make_table.py

clean: ## remove the environment and everything made
	rm -rf $(VENV) demo site .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Undula needs Python 3.11 or newer; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	@touch $@ $(VENV)/.demo
