.PHONY: demo test lint bench browser clean

PYTHON ?= python3
BIN := .venv/bin

demo: .venv/core
	$(BIN)/galaxy-al demo

test: .venv/dev lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto

# The page is tested in Chromium: the machine's, Debian's, or else playwright's own.
browser: .venv/dev
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	|| (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) >/dev/null 2>&1 \
	|| $(BIN)/playwright install chromium \
	|| echo "NO BROWSER: the labelling page will not be tested."

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/bench
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/strategies.py
	$(BIN)/python benchmarks/methods.py
	$(BIN)/python benchmarks/training.py

# The stamps say what is installed: a second run installs nothing.
.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/dev: .venv/core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

.venv/bench: .venv/dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[bench]"
	touch $@

clean:
	rm -rf .venv
