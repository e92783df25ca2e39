# Two commands: `make demo` and `make test`. Each sets up its own virtual environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
OLDEST := .venv-oldest

.PHONY: demo test test-oldest lint format docs bench-setup clean

demo: $(VENV)/.ready
	$(BIN)/laconic demo

test: $(VENV)/.ready lint
	$(BIN)/python -m pytest -n auto

# The same tests with the oldest versions of everything that pyproject.toml allows.
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest -n auto

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The reference of everything public, in build/docs; the guides in docs/ are read as they are.
REFERENCE := laconic.estimators.share laconic.estimators.totalq laconic.estimators.clump laconic.estimators.holes laconic.report.report \
  laconic.pools laconic.deform laconic.losses laconic.subset laconic.clumping.neighbours \
  laconic.clumping.score laconic.boost.path laconic.model.predictor

docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet ".[docs]"
	$(BIN)/pdoc --docformat numpy --math --output-directory build/docs $(REFERENCE)

# The peers pin older versions of shared dependencies, so they live apart.
bench-setup: $(BENCH)/.ready

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(BENCH)/.ready: pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(OLDEST)/.ready: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --editable ".[test]"
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache
