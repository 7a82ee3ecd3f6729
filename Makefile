# `make` without a target lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := menu
PACKAGES := runner/fumehood snapshots/fumehood_snapshots agent_sdk/python/fumehood_agent tests \
	docs/adding/examples

.PHONY: menu
menu: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

SETUP_INPUTS := pyproject.toml agent_sdk/python/pyproject.toml constraints.txt \
	constraints.hashes.txt scripts/setup \
	scripts/setup-benchmarks

.PHONY: setup
setup: .venv/.made ## create .venv with the command .venv/bin/fumehood

.venv/.made: $(SETUP_INPUTS)
	@scripts/setup
	@touch $@

.PHONY: setup-dev
setup-dev: .venv/.made-dev ## also install what tests, checks, reports and snapshots need

.venv/.made-dev: $(SETUP_INPUTS)
	@scripts/setup dev,report
	@scripts/setup-benchmarks
	@touch .venv/.made $@

.PHONY: demo
demo: setup bubblewrap ## run three agents on the sample suite and print the results
	@.venv/bin/fumehood run sample \
		--agent schema_repair --agent instruction_parser --agent policy_aware

.PHONY: test
test: setup-dev bubblewrap ## run the tests, or those in TESTS="FOLDER..."; skip absent engines
	@scripts/run-tests $(TESTS)

.PHONY: test-all
test-all: test ## run the tests, then the slow ones: all languages and engines, chaos
	@scripts/run-tests --all -m slow $(TESTS)

.PHONY: test-release
test-release: setup-dev images ## run the longest tests, which take minutes each
	@scripts/run-tests --all --release -m release

.PHONY: test-vm
test-vm: images ## run the tests of boxes in a virtual machine with control groups of version 2: 40 minutes
	@scripts/virtual-machine env SAME_EXAMPLES=1 make test-all \
	    TESTS="tests/unit/engines tests/conformance/test_engines.py tests/conformance/test_isolation.py"

.PHONY: test-fast
test-fast: setup-dev ## run the tests that need no box, and stop at the first failure
	@.venv/bin/python -m pytest --numprocesses 4 --dist worksteal -x \
		-m 'not docker and not oci and not bubblewrap and not image'

.PHONY: lint
lint: setup-dev ## check style, spelling, retired words and import contracts
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/codespell
	@scripts/check-words
	@.venv/bin/lint-imports --no-cache

.PHONY: types
types: setup-dev ## check types
	@.venv/bin/mypy $(PACKAGES)

.PHONY: format
format: setup-dev ## format the code
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

.PHONY: proto
proto: setup-dev ## regenerate Python and TypeScript from proto/
	@scripts/proto agent_sdk/python/fumehood_agent/_proto
	@scripts/proto-typescript agent_sdk/typescript/src/generated

.PHONY: proto-check
proto-check: setup-dev ## check that generated code is current and that protos are well-formed
	@scripts/proto-check

.PHONY: images
images: setup ## build the images from which boxes start
	@.venv/bin/fumehood images build

.PHONY: wheels
wheels: setup ## build the Python wheels and the npm package into dist/
	@scripts/wheels

.PHONY: site
site: setup-dev ## build the documentation site into build/site, and fail at a broken link
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict

.PHONY: try-tutorial
try-tutorial: ## install the wheels of dist/ in a new environment and run the tutorial there
	@scripts/try-tutorial dist

.PHONY: try-tutorial-everywhere
try-tutorial-everywhere: ## run the tutorial in empty Debian roots: without boxes, with bubblewrap, and with docker
	@scripts/bare-machine make wheels try-tutorial
	@scripts/bare-machine sh -c 'apt-get update -qq && apt-get install -y -qq bubblewrap && \
		make wheels try-tutorial'
	@scripts/bare-machine scripts/with-docker make wheels try-tutorial

.PHONY: release-check
release-check: setup-dev ## build wheels, sdists, npm package, site and SBOM, and check bytes and licences
	@.venv/bin/python scripts/release-check

.PHONY: bench-snapshots
bench-snapshots: setup-dev ## measure the costs of snapshots as ratios, up to 500,000 documents
	@.venv/bin/python -m scripts.bench.snapshots

.PHONY: bench
bench: setup ## measure the costs of isolation as ratios
	@.venv/bin/python -m scripts.bench

.PHONY: bench-peers
bench-peers: ## install the programs that `make bench` compares: SWE-ReX, and as root Inspect AI
	@scripts/setup-originals swerex inspect

.PHONY: bench-compare
bench-compare: setup images ## print the speed of calls and episodes as ratios to the version in CHECKOUT=DIR
	@.venv/bin/python -m scripts.bench.compare $(CHECKOUT) --engine docker
	@.venv/bin/python -m scripts.bench.compare $(CHECKOUT) --engine bubblewrap

.PHONY: bench-waiting
bench-waiting: setup bubblewrap ## run a thousand boxes at once whose agents wait, for ten minutes
	@.venv/bin/python -m scripts.bench.waiting

.PHONY: bench-size
bench-size: setup-dev bubblewrap ## measure the cost of an episode by part, and simulate up to 1,000 nodes
	@.venv/bin/python -m scripts.bench.size $(ARGUMENTS)

.PHONY: containment
containment: images ## attack every engine and rewrite docs/containment.md
	@.venv/bin/fumehood doctor \
		--probe docker --probe docker/runsc --probe oci --probe bubblewrap \
		--page docs/containment.md

.PHONY: redteam
redteam: setup-dev images ## run the whole red-team corpus on every engine, as tests
	@.venv/bin/python -m pytest --numprocesses 3 --dist loadgroup tests/redteam --all --release --every-attack

.PHONY: conformance
conformance: setup-dev images bubblewrap ## run all protocol cases, and write the table
	@.venv/bin/python -m tests.conformance.agents

.PHONY: agents
agents: setup-dev images ## run every off-the-shelf agent against a scripted model
	@.venv/bin/python -m pytest tests/containers/test_off_the_shelf.py --all --every-agent

.PHONY: benchmarks
benchmarks: setup-dev ## run oracle and no-op on public benchmarks and print the figures
	@.venv/bin/python -m tests.benchmarks

.PHONY: benchmarks-harbor
benchmarks-harbor: setup-dev ## run oracle and no-op on the Harbor tasks in FOLDERS, one line per task
	@.venv/bin/python -m tests.benchmarks.harbor $(FOLDERS)

.PHONY: benchmarks-parity
benchmarks-parity: setup-dev ## run dbbench on SQLite and on MariaDB and print the differences
	@.venv/bin/python -m tests.benchmarks.parity

.PHONY: differential
differential: setup-dev ## score perturbed trajectories here and with the original benchmarks
	@scripts/setup-originals
	@.venv/bin/python -m tests.differential

.PHONY: chaos
chaos: setup-dev bubblewrap ## kill and break runs for some minutes and print the results
	@.venv/bin/python -m tests.chaos

.PHONY: mutants
mutants: setup-dev ## change 470 single tokens and list the changes that no test notices; for hours
	@.venv/bin/python -m scripts.mutants

.PHONY: flatness
flatness: setup ## print the memory use of a service and of an inline run over EPISODES episodes
	@.venv/bin/python -m scripts.bench.flatness --episodes $(or $(EPISODES),10000)
	@.venv/bin/python -m scripts.bench.flatness --episodes $(or $(EPISODES),10000) --inline

.PHONY: fuzz
fuzz: setup-dev ## fuzz every parser for ten minutes
	@.venv/bin/python -c 'import atheris' 2>/dev/null || scripts/setup dev,report,fuzz
	@.venv/bin/python -m tests.fuzz

.PHONY: schemas
schemas: setup ## rewrite the published JSON Schemas
	@.venv/bin/fumehood schema run >docs/run_config.schema.json
	@.venv/bin/fumehood schema experiment >docs/experiment.schema.json
	@.venv/bin/fumehood schema suite >docs/suite.schema.json
	@.venv/bin/python scripts/fault-table

.PHONY: versions
versions: setup-dev ## pin the installed versions and their digests in constraints*.txt
	@.venv/bin/python scripts/pin-versions
	@touch .venv/.made .venv/.made-dev

.PHONY: ci
ci: images lint types proto-check test ## run all checks that a change must pass

.PHONY: clean
clean: ## remove everything that can be rebuilt; runs/ stays
	@rm -rf .venv proto/node_modules tests/browser/axe/node_modules agent_sdk/typescript/{build,dist,node_modules} \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

# Installs bubblewrap where no container engine is available.
.PHONY: bubblewrap
bubblewrap:
	@command -v bwrap >/dev/null || docker info >/dev/null 2>&1 || \
	    scripts/debian-package bubblewrap "boxes where there is no container engine"
