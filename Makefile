# Everything there is to do here; `make` alone prints the menu.

SHELL := /bin/bash
.DEFAULT_GOAL := menu
PACKAGES := runner/fumehood snapshots/fumehood_snapshots agent_sdk/python/fumehood_agent tests
TESTS := .venv/bin/python -m pytest --numprocesses logical --dist worksteal

.PHONY: menu
menu: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

WRITTEN := pyproject.toml agent_sdk/python/pyproject.toml constraints.txt scripts/setup scripts/setup-benchmarks

.PHONY: setup
setup: .venv/.made ## make .venv, with the command in .venv/bin/fumehood

.venv/.made: $(WRITTEN)
	@scripts/setup
	@touch $@

.PHONY: setup-dev
setup-dev: .venv/.made-dev ## the same with all that tests, checks, reports and snapshots need

.venv/.made-dev: $(WRITTEN)
	@scripts/setup dev,report
	@scripts/setup-benchmarks
	@touch .venv/.made $@

.PHONY: demo
demo: setup bubblewrap ## run three agents on the sample suite and print how they did
	@.venv/bin/fumehood run sample --agent schema_repair --agent instruction_parser --agent policy_aware

.PHONY: test
test: setup-dev bubblewrap ## run every test; those that need a container engine say so where there is none
	@$(TESTS)

.PHONY: test-fast
test-fast: setup-dev ## run the tests that need no box, stop at the first failure
	@$(TESTS) -x -m 'not docker and not bubblewrap and not image'

.PHONY: lint
lint: setup-dev ## check style, and which room imports which
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/lint-imports --no-cache

.PHONY: types
types: setup-dev ## check types
	@.venv/bin/mypy $(PACKAGES)

.PHONY: format
format: setup-dev ## put the code into shape
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

.PHONY: proto
proto: setup-dev ## generate Python and TypeScript from proto/ again
	@scripts/proto agent_sdk/python/fumehood_agent/_proto
	@scripts/proto-typescript agent_sdk/typescript/src/generated

.PHONY: proto-check
proto-check: setup-dev ## check that generated code is fresh, protos have style and nothing breaks
	@scripts/proto-check

.PHONY: images
images: setup ## build the images that boxes are started from
	@.venv/bin/fumehood images build

.PHONY: bench-snapshots
bench-snapshots: setup-dev ## measure what snapshots cost, as ratios; sizes up to 500,000 documents
	@.venv/bin/python -m fumehood_snapshots.bench

.PHONY: bench
bench: setup ## measure what the wall costs, as ratios
	@.venv/bin/python -m fumehood.bench

.PHONY: containment
containment: images ## attack every engine and write down what held
	@.venv/bin/fumehood doctor --probe docker --probe docker/runsc --probe bubblewrap --page docs/containment.md

.PHONY: hostile
hostile: setup-dev images ## let every hostile agent loose on every engine, as tests
	@.venv/bin/python -m pytest --numprocesses 3 --dist loadgroup tests/hostile --every-attack

.PHONY: conformance
conformance: setup-dev images bubblewrap ## play every agent vector in every language on every engine, and write the table
	@.venv/bin/python -m tests.conformance.agents

.PHONY: agents
agents: setup-dev images ## run every agent off the shelf against a scripted model, also the large ones
	@.venv/bin/python -m pytest tests/containers/test_off_the_shelf.py --every-agent

.PHONY: benchmarks
benchmarks: setup-dev ## prove public benchmarks whole, oracle and no-op, and print the figures
	@.venv/bin/python -m tests.benchmarks

.PHONY: benchmarks-parity
benchmarks-parity: setup-dev ## play dbbench on SQLite and on MariaDB, and print where they differ
	@.venv/bin/python -m tests.benchmarks.parity

.PHONY: chaos
chaos: setup-dev bubblewrap ## kill and break runs for some minutes, and print what was survived
	@.venv/bin/python -m tests.chaos

.PHONY: flatness
flatness: setup ## play ten thousand episodes through one service, and print what it keeps
	@.venv/bin/python -m fumehood.bench.flatness

.PHONY: fuzz
fuzz: setup-dev ## look for ten minutes for bytes that break a reader
	@.venv/bin/python -c 'import atheris' 2>/dev/null || scripts/setup dev,report,fuzz
	@.venv/bin/python -m tests.fuzz

.PHONY: schemas
schemas: setup ## write the published JSON Schemas again
	@.venv/bin/fumehood schema run >docs/run_config.schema.json
	@.venv/bin/fumehood schema task >docs/task.schema.json
	@.venv/bin/fumehood schema faults >docs/faults.schema.json

.PHONY: versions
versions: setup-dev ## write down the versions that .venv holds as those to keep to
	@{ head -n 1 constraints.txt; .venv/bin/python -m pip freeze --exclude-editable; } >.venv/versions
	@cp .venv/versions constraints.txt && touch .venv/.made .venv/.made-dev

.PHONY: ci
ci: images lint types proto-check test ## all that must pass before a change is good

.PHONY: clean
clean: ## remove whatever can be made again; runs/ stays
	@rm -rf .venv proto/node_modules agent_sdk/typescript/{build,dist,node_modules} .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

# Boxes for machines without a container engine.
.PHONY: bubblewrap
bubblewrap:
	@command -v bwrap >/dev/null || docker info >/dev/null 2>&1 || \
	    scripts/debian-package bubblewrap "boxes where there is no container engine"
