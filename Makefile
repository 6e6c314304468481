# Each target does its own set-up: a virtual environment in .venv, rebuilt only when the
# declared dependencies change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo docs test lint types pytest test-install format bench torture soak lock clean

demo: $(READY)
	$(BIN)/halfseen demo --output demo-output

# A warning is an error; the pages load nothing from elsewhere.
docs: $(READY)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build
	@echo "docs/_build/index.html"

test: lint types pytest

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

# By file: fixtures of a file are made once (groups of tests do not work with pytest 9.2).
pytest: $(READY)
	$(BIN)/pytest -n 2 --dist loadfile

# README, quick start and examples in a fresh environment without `dev`: downloads everything.
test-install: $(READY)
	$(BIN)/pytest tests/test_first_minutes.py -m install

# Ratios to a straightforward implementation, in one process: wants a machine to itself.
bench: $(READY)
	$(BIN)/python benchmarks/speed.py --output docs/results/speed.json

# Kills, faults, power cuts, damage, hostile tables and requests; `make torture SECONDS=28800` for a night.
SECONDS ?= 60
SEED ?= 0
torture: $(READY)
	PYTHONPATH=benchmarks $(BIN)/python -m torture --seconds $(SECONDS) --seed $(SEED)

# The server under mixed load for an hour.
soak: $(READY)
	$(BIN)/python benchmarks/soak.py --seconds 3600 --seed $(SEED)

# Hashes for the versions of constraints.txt: run it after changing one.
lock: $(READY)
	$(PIP) uv
	grep -v '^torch==' constraints.txt | $(BIN)/uv pip compile --quiet --no-deps --generate-hashes --no-annotate --no-header --python $(BIN)/python --output-file requirements.lock -

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# torch stands apart: each platform has a build of its own, which needs packages of its own.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(READY): pyproject.toml src/halfseen_bench/pyproject.toml src/halfseen_serve/pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements.lock
	$(PIP) -c constraints.txt torch
	$(PIP) --no-deps --no-build-isolation -e . -e src/halfseen_bench -e src/halfseen_serve
	$(BIN)/python -m pip check
	touch $@

clean:
	rm -rf $(VENV) docs/_build demo-output dist soak.jsonl torture-failures .pytest_cache .mypy_cache .ruff_cache
