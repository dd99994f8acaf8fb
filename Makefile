# make demo: install into .venv and run the demonstration. make test: the same for the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo docs test test-kernels crash fuzz lint bench clean

demo: $(VENV)/installed
	$(BIN)/hotshot demo

test: $(VENV)/installed-dev lint docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/evaluation/test_dask.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/evaluation/test_dask.py

# The tests under the matrix kernels of several processors, with 1 and 2 threads: tolerances must hold for all.
test-kernels: $(VENV)/installed-dev
	$(BIN)/python scripts/test_kernels.py

# Every command that writes, killed before each of its file operations and run again: nothing may be lost or mixed.
crash: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks crash

# Property tests, feature files and command lines with fresh random inputs; what is found is printed with how to repeat
# it.
FUZZ_FILES ?= 20000
FUZZ_SECONDS ?= 600
fuzz: $(VENV)/installed-dev
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n 2 -m hypothesis
	$(BIN)/python -m benchmarks fuzz_files --inputs $(FUZZ_FILES) --seed $$(date +%s)
	$(BIN)/python -m benchmarks fuzz_commands --seconds $(FUZZ_SECONDS) --seed $$(date +%s)

# The site, to be opened as site/index.html: every code cell is run, and a warning is an error.
docs: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -j 2 --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs site

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks transport
	$(BIN)/python -m benchmarks estimator
	$(BIN)/python -m benchmarks evaluation
	$(BIN)/python -m benchmarks interval_coverage
	$(BIN)/python -m benchmarks banks

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(VENV)/installed
	$(PIP) --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist site jupyter_execute .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: wheel coverage

# The source archive and the wheel in dist/, and the demo run from the wheel in an empty environment without network.
wheel: $(VENV)/installed-dev
	$(BIN)/python scripts/check_wheel.py

# The tests with coverage, slower than `make test`. Fails below the floor in pyproject.toml.
coverage: $(VENV)/installed-dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report= --cov-fail-under=0 \
		--ignore tests/evaluation/test_dask.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --cov --cov-append --cov-report=term \
		--cov-report=xml tests/evaluation/test_dask.py
