# Two commands: `make demo` and `make test`. Each sets up its own virtual environment first.
# `make chips` runs exported models on emulated microcontrollers. It installs Debian packages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
OLDEST := .venv-oldest

# Neighbouring tests run in one process, because they share fixtures and compiled kernels. Every core
# has a process of its own, so more threads of BLAS or OpenMP would only wait for one another.
PYTEST := -m pytest -n auto --dist worksteal
test test-long test-oldest: export OMP_NUM_THREADS := 1

.PHONY: demo test test-long test-oldest lint format docs bench-setup chips fuzz-export compilers browser clean

demo: $(VENV)/.ready
	$(BIN)/laconic demo

test: $(VENV)/.ready lint
	$(BIN)/python $(PYTEST)

# The cases that `make test` leaves out; see tests/in_depth.py.
test-long: $(VENV)/.ready
	$(BIN)/python $(PYTEST) -m long

# The same tests with the oldest versions of everything that pyproject.toml allows.
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python $(PYTEST) -m ""

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

# Exported models on four microcontrollers: flash, RAM, stack, cycles, and every answer compared with
# Python's. Not part of `make test`, because it needs cross-compilers and emulators.
chips: $(VENV)/.ready compilers
	$(BIN)/python benchmarks/chips.py --json benchmarks/results/chips.json

# A thousand random models in C, by gcc and clang with sanitizers, compared with Python bit for bit.
fuzz-export: $(VENV)/.ready
	$(BIN)/python tests/export/random_models.py --models 1000

# Debian's compilers and emulators. Tests that need one are skipped without it.
COMPILERS := gcc g++ libc6-dev clang gcc-avr avr-libc simavr libsimavr-dev gcc-arm-none-eabi \
  libnewlib-arm-none-eabi qemu-system-arm gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc

compilers:
	@$(call install,$(COMPILERS))
	@$(call install,libclang-rt-$$(clang -dumpversion | cut -d. -f1)-dev)

# Debian's Chromium, for the tests of pages. They are skipped without it.
browser:
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || { $(call install,chromium); }

# Installs those of the given Debian packages that are missing.
define install
missing=""; for package in $(1); do \
  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q '^install ok installed' \
    || missing="$$missing $$package"; \
done; \
if [ -n "$$missing" ]; then \
  command -v apt-get > /dev/null || { \
    echo "make $@ needs Debian's apt-get to install$$missing" >&2; exit 1; }; \
  root=$$([ "$$(id -u)" = 0 ] || echo sudo); \
  $$root apt-get update --quiet=2 && \
  $$root apt-get install --yes --quiet=2 --no-install-recommends $$missing; \
fi
endef

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
