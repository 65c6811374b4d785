# Each set of packages is installed once: a file in the environment marks it as installed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
RUN := $(VENV)/bin/python
OUT_OF_CORE := $(RUN) -m tests.benchmarks.out_of_core
KEEP := --data build/bench-data
INSTALL := $(RUN) -m pip install --disable-pip-version-check --quiet --editable

.PHONY: bench-defaults demo test soak browser mutants bench bench-memory lint clean

demo: $(VENV)/.with-core
	$(RUN) -m examples.demo

test: $(VENV)/.with-test
	$(RUN) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.with-test
	$(RUN) -m pytest -m soak -s

# Needs Chromium: `apt-get install chromium`, or CHROMIUM=/path/to/it.
browser: $(VENV)/.with-test
	$(RUN) -m pytest -m browser tests/test_browser.py

# FILES="letter.npz pendigits.npz": arrays X, y and n_train
bench-losses: $(VENV)/.with-bench
	$(RUN) -m tests.benchmarks.losses $(FILES)

bench-defaults: $(VENV)/.with-bench
	$(RUN) -m tests.benchmarks.defaults

mutants: $(VENV)/.with-test
	$(RUN) -m tests.mutants

bench: $(VENV)/.with-bench
	$(RUN) -m tests.benchmarks.compare
	$(RUN) -m tests.benchmarks.cold_start

# Each writes the data that it needs, and keeps them for the next.
bench-memory: $(VENV)/.with-bench
	$(OUT_OF_CORE) capped $(KEEP)
	$(OUT_OF_CORE) many-rows $(KEEP)
	$(OUT_OF_CORE) workers $(KEEP)
	$(OUT_OF_CORE) resident --rivals $(KEEP)
	$(OUT_OF_CORE) throughput $(KEEP)
	$(OUT_OF_CORE) throughput --rows 4e6 --features 16 --classes 10 --memory-limit 476MB $(KEEP)
	$(OUT_OF_CORE) rival $(KEEP)
	$(OUT_OF_CORE) scaling $(KEEP)

lint: $(VENV)/.with-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

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
