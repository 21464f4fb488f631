# Two commands do everything on a machine with Python 3.11+, git and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-full browser database docs lint format check bench clean

demo: .venv/core
	$(BIN)/shoal demo --out demo

test: .venv/dev
	$(BIN)/python -m pytest -m "not slow" --cov --cov-fail-under=95

# What `make test` leaves out: tests that take long, need much memory, or a browser. PostgreSQL's tests are part of `make
# test` where it is installed, and run here where it was not. No test needs Java yet.
test-full: .venv/dev browser database
	$(BIN)/python -m pytest -m "slow or database" tests

# Chromium, from Debian where this runs as root; elsewhere the tests of the page in a browser skip and say why.
browser:
	command -v chromium >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    chromium fonts-dejavu-core >/dev/null; }

# PostgreSQL, likewise: its tests start a server of their own.
database:
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || test "$$(id -u)" != 0 || \
	  ! command -v apt-get >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    postgresql >/dev/null; }

# The documentation site, into .site: no network is needed to build or to read it.
docs: .venv/dev
	rm -rf .site
	$(BIN)/sphinx-build -q -W --keep-going -c docs -b html . .site
	$(BIN)/python tools/check_site.py .site

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test

bench: .venv/bench .venv-peers
	$(BIN)/python benchmarks/run.py

.venv/core: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "shoal needs Python 3.11 or newer; say PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[files]'
	touch $@

# pyCANON, the auditor in the tests, pins old versions of what it needs, although it runs on ours: without its pins.
.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'pycanon>=1.3'
	touch $@

# Other libraries for density ratios, for the benchmark only: one of them brings TensorFlow.
.venv-peers:
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check adapt densratio tensorflow-cpu

.venv/bench: .venv/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

clean:
	rm -rf .venv .venv-peers .site demo .coverage
