# What a person or a CI types. Everything is installed into .venv in this folder; nothing else on the machine is touched.
# PYTHON=/path/to/python chooses the interpreter; without it the first one of version 3.11 or later is used.

SHELL := bash
VENV := .venv
BIN := $(VENV)/bin
TOPIC ?= agentic search

.DEFAULT_GOAL := help
.PHONY: help check test test-all bench bench-peers bench-workers torture prove-deep backends tables calibration field-trial docs site format clean

help: ## show this list
	@echo "usage: make TARGET"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  %-13s %s\n", $$1, $$2 }'

# Both halves run even if the first one fails, so that one go shows everything that is wrong.
check: $(VENV)/.check ## prove it: check the SQLite store, then kill and resume the example pipeline at each crash point
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && failed=0; \
	$(BIN)/n00dles-testing check "sqlite:///$$folder/check.db" || failed=1; \
	$(BIN)/n00dles-testing explore docs/examples/content.py:content_pipeline --input topic="$(TOPIC)" || failed=1; \
	if [ $$failed = 0 ]; then echo "make check: passed"; else echo "make check: FAILED"; fi; \
	exit $$failed

# mypy needs one processor for a while, and the tests wait for other processes half of the time: they run side by side.
# They start thousands of interpreters. What these import is compiled first, in both forms: pytest has one of its own.
# The tests then write no bytecode: of a module that one writes twice within a second, an older form would be taken.
test: $(VENV)/.dev ## lint, types and all tests; fails if any of them does
	@types=$$(mktemp) && trap 'rm -f "$$types"' EXIT && failed=0; \
	$(BIN)/mypy > "$$types" 2>&1 & \
	$(BIN)/ruff check . || failed=1; \
	$(BIN)/ruff format --check . || failed=1; \
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q n00dles n00dles_testing conformance docs tests; \
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n0 -qq --collect-only > /dev/null 2>&1; \
	PYTHONDONTWRITEBYTECODE=1 $(BIN)/pytest -n auto --dist worksteal --durations 30 --durations-min 10 || failed=1; \
	wait $$! || failed=1; \
	cat "$$types"; \
	exit $$failed

test-all: ## the tests on every supported Python that is installed, each in a virtual environment of its own
	@.ci/test-all

bench: $(VENV)/.dev ## the benchmarks: each figure with its target
	@$(BIN)/python -m conformance.benchmarks

bench-peers: $(VENV)/.dev ## what a checkpoint costs here and elsewhere, plotted; takes half an hour, does nothing else
	@$(BIN)/python -m conformance.benchmarks peers

bench-workers: $(VENV)/.dev ## eight workers against one, 400 runs on each store; on a machine that does nothing else
	@$(BIN)/python -m conformance.benchmarks workers

torture: $(VENV)/.dev ## 200 runs on each store, while workers and servers are killed until every run has ended
	@$(BIN)/python -m conformance.torture --results conformance/results

prove-deep: $(VENV)/.dev ## the contract of the executor on 10 000 generated scenarios; takes minutes
	@N00DLES_PROFILE=deep $(BIN)/pytest -q -n0 -o faulthandler_timeout=1800 tests/n00dles_testing/campaign/test_prove.py

backends: $(VENV)/.dev ## the suite on the stores of this project, also on PostgreSQL and Valkey; takes minutes
	@$(BIN)/pytest -n auto conformance/test_backends.py conformance/served_backends.py

tables: $(VENV)/.dev ## every broken and every correct store, 20 seeds each; takes an hour or more, goes on where it was
	@$(BIN)/python -m conformance.tables --work build/tables.jsonl

calibration: $(VENV)/.dev ## what the power-loss explorer finds in ways of saving whose faults are known
	@$(BIN)/python -m conformance.calibration

field-trial: $(VENV)/.dev ## the suite on the stores of others, each in an environment of its own; takes an hour, goes on
	@$(BIN)/python -m conformance.field_trial $(if $(SUBJECT),--subject $(SUBJECT))
	@$(if $(SUBJECT),,$(BIN)/python -m conformance.executors)

docs: $(VENV)/.dev ## write the reference pages that come from the code
	@$(BIN)/python -m tests.docs.reference

site: $(VENV)/.docs ## the documentation as a site, in build/site; fails at a broken link, and at a page that nothing lists
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -c docs -d build/site-pages . build/site
	@echo "make site: build/site/index.html"

format: $(VENV)/.dev ## format the code, and fix what the linter can fix
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove what the other targets made
	rm -rf .venv .venv-3.* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps record which extras are installed; a changed pyproject.toml makes them old.
$(VENV)/.check: pyproject.toml
	@.ci/install $(VENV) openai
	@touch $@

$(VENV)/.docs: pyproject.toml
	@.ci/install $(VENV) docs
	@touch $@

$(VENV)/.dev: pyproject.toml
	@.ci/install $(VENV) dev
	@touch $@ $(VENV)/.check $(VENV)/.docs
