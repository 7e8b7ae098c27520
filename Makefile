# Two commands matter: `make run` and `make test`. Both set up what they need; a second run is quick.
.PHONY: run install test slow postgresql browser pictures chaos fuzz clients bench lint format prerequisites browser-engine clean
.DEFAULT_GOAL := run

VENV := .venv
BIN := $(VENV)/bin
# The first Python on the path that is new enough; PYTHON=/path/to/python chooses another.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	echo "$$name"; break; fi; done)
# What is type-checked.
TYPED := platform/llamero inference models_registry manage.py
export PYTHONPATH := $(CURDIR):$(CURDIR)/platform

run: $(VENV)/.runtime
	@$(BIN)/python manage.py up

# What a machine needs that runs one part alone: see docs/nodes.md.
install: $(VENV)/.runtime

# Two at a time, file by file: each process has a home, a broker and a database of its own.
TEST_WORKERS ?= 2
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --dist loadfile -m "not slow and not browser"

# What takes longer than a change should wait for: more cases of the same kinds.
slow: $(VENV)/.dev browser-engine
	$(BIN)/python -m pytest -m slow

# The tests of what the database keeps, on a real PostgreSQL; `make slow` has them, too.
postgresql: $(VENV)/.dev
	$(BIN)/python -m tests.postgresql

# Only the tests that drive a browser.
browser: $(VENV)/.dev browser-engine
	$(BIN)/python -m pytest -m browser

# Takes the pictures of docs/ anew, of a real model at work.
pictures: $(VENV)/.dev browser-engine
	PICTURES=$(CURDIR)/docs/pictures $(BIN)/python -m pytest -m slow tests/browser/test_pictures.py

# Breaks a running system in every way, and prints what was promised, tried and broken: docs/chaos.md.
# TRIALS="P5 gateway" chooses some, SCALE=0.2 has fewer rounds, FULL=1 has waits at full length,
# LIST=1 names them and runs none.
chaos: $(VENV)/.dev
	$(BIN)/python -m tests.chaos $(TRIALS) --scale $(or $(SCALE),1) $(if $(FULL),--full) $(if $(LIST),--list)

# Sends made-up requests to every route: CASES=20000 sends more, ONLY='^/v1/chat' asks few routes.
fuzz: $(VENV)/.dev $(VENV)-clients/.installed
	SCHEMATHESIS=$(VENV)-clients/bin/schemathesis \
	$(BIN)/python -m tests.fuzz --cases $(or $(CASES),10000) $(if $(ONLY),--only '$(ONLY)')

# Runs other people's clients against a real Llamero; the first time installs half a gigabyte.
clients: $(VENV)/.dev $(VENV)-clients/.installed $(VENV)-llama-index/.installed
	$(BIN)/python -m tests.clients \
	$(foreach name,litellm langchain llm_tool,$(CURDIR)/$(VENV)-clients/bin/python check_$(name).py) \
	$(CURDIR)/$(VENV)-llama-index/bin/python check_llama_index.py

$(VENV)-%/.installed: requirements-%.txt | prerequisites
	"$(PYTHON)" -m venv $(VENV)-$*
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# What a step, a token and a request cost beside computing; benchmarks/README.md lists all.
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/engine_step.py "$$($(BIN)/python -c 'from tests.models import fetch_smollm2; print(fetch_smollm2())')"
	$(BIN)/python benchmarks/relay_overhead.py
	$(BIN)/python benchmarks/gateway_stream.py
	$(BIN)/python benchmarks/limits_overhead.py

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(TYPED)
	$(BIN)/lint-imports
	@set -e; home=$$(mktemp -d); trap 'rm -rf "$$home"' EXIT; \
	export LLAMERO_HOME="$$home" LLAMERO_HTTPS=true; \
	$(BIN)/python manage.py check --deploy --fail-level WARNING; \
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each missing thing is named with its cure, before anything is downloaded.
prerequisites:
	@if [ -z "$(PYTHON)" ]; then \
	echo "Python 3.11 or newer is missing. Debian: apt install python3 python3-venv. macOS: brew install python@3.13"; \
	exit 1; fi
	@if ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then \
	echo "Python's venv module is missing. Debian: apt install python3-venv"; exit 1; fi
	@if ! command -v "$${CC:-cc}" >/dev/null && ! command -v gcc >/dev/null && ! command -v clang >/dev/null; then \
	echo "A C compiler is missing. Debian: apt install build-essential. macOS: xcode-select --install"; exit 1; fi
	@if ! command -v "$${CXX:-c++}" >/dev/null && ! command -v g++ >/dev/null && ! command -v clang++ >/dev/null; then \
	echo "A C++ compiler is missing. Debian: apt install build-essential. macOS: xcode-select --install"; exit 1; fi

$(BIN)/python:
	@$(MAKE) --no-print-directory prerequisites
	"$(PYTHON)" -m venv $(VENV)

$(VENV)/.runtime: requirements.txt constraints.txt | $(BIN)/python
	@echo "Installing into $(VENV). The first time compiles the engine for this machine: some minutes."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c constraints.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c constraints.txt
	@touch $@

# Browser tests use the system's Chromium; without one they are skipped, and this says the cure.
browser-engine:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo "Installing Chromium for the browser tests."; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	else echo "Chromium is missing, so browser tests are skipped. Debian: apt install chromium"; fi

clean:
	rm -rf $(VENV) $(VENV)-clients $(VENV)-llama-index .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
