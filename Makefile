# Everything a developer or CI runs; each target is one line. `make help` lists them.
# A fresh machine needs Python >= 3.11, make and git: the environment is made in .venv on first use.
SHELL := /bin/sh
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
PYTEST_ARGS ?=
BIN := .venv/bin
ENV := .venv/.ready
ENV_MCP := .venv-mcp/.ready
PROTO_BASE ?= $(or $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null),$(shell git rev-parse --verify --quiet origin/main),$(shell git rev-parse --verify --quiet main))
TIER = $(patsubst ray,raycluster,$*)
.DEFAULT_GOAL := help
.PHONY: help env env-mcp demo test check format lint types types-mcp layers protos protos-check golden lock bench chaos web

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
env: $(ENV) ## make or refresh the environment in .venv
	@echo "ready: $(BIN)"
env-mcp: $(ENV_MCP) ## the same for the extra pty-fabric[mcp], in .venv-mcp
	@echo "ready: .venv-mcp/bin"
demo: $(ENV) ## a terminal session through a whole fabric on this machine, explained as it goes
	@.ci/web try
	@$(BIN)/python -m fabric.cli.demo
web: $(ENV) ## build the page of the browser from fabric/web/ui
	@.ci/web build
test: $(ENV) $(ENV_MCP) ## every test tier that can run here
	@.ci/web try
	$(BIN)/python -m pytest -m "not load" $(PYTEST_ARGS)
	@.ci/web test
test-e2e: $(ENV_MCP)
test-%: $(ENV) ## one tier: unit terminal rpc ray e2e ui browser load
	@$(if $(filter browser,$*),.ci/web try)
	$(if $(filter ui,$*),@.ci/web test,$(BIN)/python -m pytest tests/$(TIER) $(PYTEST_ARGS))
check: lint types layers protos-check ## all checks that run no project code
format: $(ENV) ## put the code into its standard form
	$(BIN)/ruff format . && $(BIN)/ruff check --fix-only --quiet . && $(BIN)/buf format -w proto
lint: $(ENV) ## standard form and style
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
types: $(ENV) ## mypy --strict
	$(BIN)/mypy
types-mcp: $(ENV_MCP) ## fabric/mcp against the types of the MCP SDK
	$(BIN)/mypy --python-executable .venv-mcp/bin/python --follow-imports silent -p fabric.mcp
layers: $(ENV) ## who may import whom
	$(BIN)/lint-imports --no-logo
protos: $(ENV) ## compile proto/ into fabric/api
	$(BIN)/python proto/generate.py
protos-check: $(ENV) ## protos: style, promise of v1, generated code up to date
	$(BIN)/buf lint proto && .ci/protos-breaking "$(BIN)/buf" "$(PROTO_BASE)" && $(BIN)/python proto/generate.py --check
golden: $(ENV) ## write the tools a model sees anew into tests/unit/tools/golden_tools.json
	$(BIN)/python -m fabric.cli tools --json --set tasks.enabled=true | $(BIN)/python -m json.tool --no-ensure-ascii --indent 2 > tests/unit/tools/golden_tools.json
lock: $(ENV) ## resolve the lock files anew
	$(BIN)/uv pip compile --quiet pyproject.toml --group dev --generate-hashes --universal --python-version 3.11 --custom-compile-command "make lock" -o requirements.lock
	$(BIN)/uv pip compile --quiet pyproject.toml --extra mcp --group build --constraints requirements.lock --generate-hashes --universal --python-version 3.11 --custom-compile-command "make lock" -o requirements-mcp.lock
	$(BIN)/uv pip compile --quiet --group node --generate-hashes --universal --python-version 3.11 --custom-compile-command "make lock" -o requirements-node.lock
bench: $(ENV) ## measure; prints machine, versions, medians and p99
	$(BIN)/python -m tests.load.bench
chaos: $(ENV) ## kill everything but shims for half an hour, then audit; ARGS="--seed 2 --minutes 5"
	$(BIN)/python -m tests.load.chaos $(ARGS)

$(ENV_MCP): requirements-mcp.lock pyproject.toml .ci/env-mcp | $(ENV)
	@.ci/env-mcp $@
$(ENV): requirements.lock pyproject.toml .ci/env
	@.ci/env "$(PYTHON)" $@
