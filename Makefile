# `make` lists the commands. Each of them makes .venv on its own when that is missing, half made, moved,
# or older than pyproject.toml and constraints.txt. Needs GNU make 3.82 or newer.

# First of all: the make of other systems may be too old for the rest of this file.
SYSTEM := $(shell uname -s)
ifneq ($(SYSTEM),Linux)
$(error tornpage runs on Linux only; this is $(SYSTEM))
endif

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# The stamp holds the directory it was made in: the scripts of a venv do not survive a move.
STAMP := $(VENV)/.installed
# There from the first step of an installation to its last: a venv that still has it was interrupted.
UNFINISHED := $(VENV)/.unfinished

SHELL := /bin/sh
.SHELLFLAGS := -euc
.ONESHELL:
.SILENT:
.DEFAULT_GOAL := help

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

# Whether the venv works; when PYTHON was given by the user, also whether it is a venv of that Python.
HEALTHY := [ ! -e $(UNFINISHED) ] && $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))'
ifneq ($(origin PYTHON),file)
WHICH := -c 'import sys; print(sys.base_prefix, sys.version)'
HEALTHY += && [ "$$($(PYTHON) $(WHICH))" = "$$($(BIN)/python $(WHICH))" ]
endif
IN_PLACE := [ "$$(cat $(STAMP))" = "$$(pwd)" ]

.PHONY: help prove test test-all lint bench docs clean again
help: ## list the commands
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile
	echo
	echo "  make test ARGS='-k recovery -n 0'     other arguments for the tool behind the command"
	echo "  make test PYTHON=python3.13           another Python for .venv"

prove: $(STAMP) ## the main job: check, crash, judge and report (tornpage prove)
	$(BIN)/tornpage prove $(ARGS)

test: $(STAMP) ## run the core of the tests, without those that take seconds
	$(BIN)/python -P -m pytest -m 'not deep and not slow' $(ARGS)

test-all: $(STAMP) ## run all tests but those that take minutes
	$(BIN)/python -P -m pytest $(ARGS)

lint: $(STAMP) ## check style, format, words and types
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet || { echo "not formatted; run $(BIN)/ruff format" >&2; exit 1; }
	$(BIN)/python -P tests/support/prose.py
	$(BIN)/mypy --no-error-summary

bench: $(STAMP) ## measure (tornpage bench)
	$(BIN)/tornpage bench $(ARGS)

docs: $(STAMP) ## make the site of docs/ in build/site
	$(BIN)/python -P -m sphinx --fail-on-warning --quiet docs build/site
	echo build/site/index.html

clean: ## remove everything that was made, except the failures that Hypothesis remembers
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

ifneq ($(shell { $(HEALTHY) && $(IN_PLACE) && echo yes; } 2>/dev/null),yes)
$(STAMP): again
endif
again:

$(STAMP): pyproject.toml constraints.txt
	refuse() { echo "$$1" >&2; exit 1; }
	if ! { $(HEALTHY) && { [ ! -e $(STAMP) ] || $(IN_PLACE); }; } 2>/dev/null; then
		version=$$($(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) ||
			refuse "tornpage needs Python 3.11 or newer, and $(PYTHON) does not start; name another: make PYTHON=python3.12 …"
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
			refuse "tornpage needs Python 3.11 or newer, and $(PYTHON) is $$version; name another: make PYTHON=python3.12 …"
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null ||
			refuse "$(PYTHON) has no venv module; on Debian and Ubuntu: apt-get install python3-venv"
		rm -rf $(VENV)
		mkdir $(VENV)
		touch $(UNFINISHED)
		$(PYTHON) -m venv $(VENV)
	fi
	echo "installing into $(VENV)" >&2
	touch $(UNFINISHED)
	# An older pip makes a script that imports `re` first: more of an early interrupt would be a traceback.
	$(BIN)/python -m pip install --quiet -c constraints.txt pip setuptools
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[dev,docs,spark]'
	pwd > $(STAMP)
	rm $(UNFINISHED)
