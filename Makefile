.PHONY: demo quick test lint bench browser docs dist compat clean

PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

demo: .venv/core
	$(BIN)/galaxy-al demo

# The tests of a minute, while you work.
quick: .venv/dev
	$(PYTEST) -m "not slow and not browser and not torch" --hypothesis-profile quick

test: .venv/dev lint browser
	$(PYTEST)

# The page is tested in Chromium: the machine's, or Debian's where it may be installed.
browser: .venv/dev
	@./.ci/browser || echo "NO BROWSER: the tests of the labelling page will be skipped."

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

docs: .venv/docs
	$(BIN)/mkdocs build --strict

dist: .venv/dev
	$(BIN)/python -m build --outdir dist .

# The core's tests on the oldest and the newest Python that are installed here.
compat:
	@./.ci/compat

# The stamps say what is installed: a second run installs nothing.
.venv/core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(INSTALL) .
	touch $@

.venv/dev .venv/docs .venv/bench: .venv/core
	$(INSTALL) ".[$(@F)]"
	touch $@

clean:
	rm -rf .venv build dist
