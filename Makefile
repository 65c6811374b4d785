# Each set of packages is installed once: a file in the environment says that it is there.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
RUN := $(VENV)/bin/python
INSTALL := $(RUN) -m pip install --disable-pip-version-check --quiet --editable

.PHONY: demo test bench lint clean

demo: $(VENV)/.with-core
	$(RUN) -m examples.demo

test: $(VENV)/.with-test
	$(RUN) -m pytest

bench: $(VENV)/.with-bench
	$(RUN) -m tests.benchmarks.compare

lint: $(VENV)/.with-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

clean:
	rm -rf $(VENV) demo-data build dist .pytest_cache .mypy_cache .ruff_cache

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "distboost needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Give another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.with-core: pyproject.toml | $(RUN)
	$(INSTALL) .
	@touch $@

$(VENV)/.with-%: pyproject.toml | $(RUN)
	$(INSTALL) '.[$*]'
	@touch $@
