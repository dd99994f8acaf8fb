# make demo: install into .venv and run the demonstration. make test: the same for the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench clean

demo: $(VENV)/installed
	$(BIN)/hotshot demo

test: $(VENV)/installed-dev lint
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --ignore tests/evaluation/test_dask.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/evaluation/test_dask.py

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks.transport
	$(BIN)/python -m benchmarks.estimator
	$(BIN)/python -m benchmarks.evaluation
	$(BIN)/python -m benchmarks.banks

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(VENV)/installed
	$(PIP) --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
