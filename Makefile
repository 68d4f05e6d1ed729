# Every entry point of the project. `make` alone lists them.

SCENARIO ?= agent-loop# a name in scenarios/, or the path of a YAML file
TARGET ?= http://127.0.0.1:8080/v1# whom to load: base URL of an OpenAI-compatible server, or a file in scenarios/targets; several: a,b
MODEL ?=# the model's name; empty: the server's first or only one
USERS ?=# live sessions; empty: the running_sessions of the scenario if it has any, else 4 (in an open loop up to 1000)
OVER ?= pressure=0.25,0.5,1,2,4# what a sweep changes: key=a,b,c or key=first:last:step: any key of the scenario, or rate, users, arrivals
SLO ?= ttft_p99<500ms,tpot_p99<50ms# what find holds the load to, see docs/find.md
FAULT ?= timestamp-first# what cost-of puts into the prompts, see docs/scenarios.md
RATE ?=# sessions that arrive each second, for an open loop (run, web): 2, or 30s:2,1m:2-20,20; empty: a closed loop
RUN_TIME ?= 60s# how long each target gets new requests: 90s, 5m, 1h
WORKERS ?= 2# worker processes
PORT ?= 8089# port of the web page
MASTER ?= 127.0.0.1# machine of the master, for worker: HOST or HOST:PORT
RUN ?= latest# run to report: a directory, a run's id, or latest; several are set side by side
JOBS ?= 4# tests that run at the same time; most of what they do is wait
ARGS ?=# further options of Locust (run, web), kvswarm (report, prove, evict, isolate), pytest (test) or the benchmark (bench)
ENGINE ?= all# engine of test-engines: llama-cpp, mlx-lm, vllm, sglang, the same with sim- before it, or all
PYTHON ?= $(or $(realpath .venv/bin/python),python3)# Python 3.11, 3.12 or 3.13 to make .venv with; else python3

BIN := .venv/bin
NO_TESTS := 5# what pytest says if there was nothing to do: ARGS may name tests of one kind alone
ONE = --target $(TARGET) $(if $(MODEL),--model $(MODEL))
OPEN = $(if $(RATE),--load open --rate "$(RATE)")
LOAD = $(ONE) $(if $(USERS),--users $(USERS)) --workers $(WORKERS)

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-engines demo-sim check prove evict isolate run sweep find cost-of web master worker report test test-engines lint bench lock clean

help: ## list the targets and the variables
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile
	@awk 'match($$0, / \?=.*# /) {split($$0, part, / \?= ?|# /); printf "%-9s %s%s\n", part[1], part[3], part[2] ~ /^[^$$]/ ? " (" part[2] ")" : ""}' Makefile

setup: ## make .venv from the lock files; does nothing if it is up to date (the other targets run it first)
	@$(PYTHON) harness/set_up.py

demo: setup ## a real llama.cpp server on this machine, with and without prompt caching, under all three kinds of session
	$(BIN)/kvswarm demo

demo-engines: setup ## one seeded agent loop on every engine that test-engines has set up, one after the other, in one table
	$(BIN)/kvswarm demo-engines

demo-sim: setup ## 64 agents on a simulated H100, in vLLM's and in SGLang's manner, under rising pressure: where hits collapse
	$(BIN)/kvswarm demo-sim

check: setup ## start-up check of TARGET: does it reuse what it should, by its own counts
	$(BIN)/kvswarm target check $(TARGET) $(if $(MODEL),--model $(MODEL))

prove: setup ## does the prefix cache of TARGET work, and is it faster: by answers, by the engine's counter and by the clock
	$(BIN)/kvswarm prove $(ONE) $(ARGS)

evict: setup ## fill the cache of TARGET: how much it holds, what goes first, and whether that is what it claims
	$(BIN)/kvswarm evict $(ONE) $(ARGS)

isolate: setup ## two tenants, one prefix: what one sees of the other at TARGET, with and without a cache salt
	$(BIN)/kvswarm isolate $(ONE) $(ARGS)

run: setup ## load TARGET with SCENARIO for RUN_TIME, then print the tables
	$(BIN)/kvswarm run $(SCENARIO) $(LOAD) $(OPEN) --run-time $(RUN_TIME) $(ARGS)

sweep: setup ## a run for each value of OVER, each begun with a cache reset, in one table
	$(BIN)/kvswarm sweep $(SCENARIO) --over "$(OVER)" $(LOAD) --run-time $(RUN_TIME) $(ARGS)

find: setup ## the highest rate of sessions at which TARGET still meets SLO, as goodput; the first look at a rate takes RUN_TIME
	$(BIN)/kvswarm find $(SCENARIO) --slo "$(SLO)" $(LOAD) --run-time $(RUN_TIME) $(ARGS)

cost-of: setup ## the same sessions without and with FAULT: what it costs in tokens and in TTFT
	$(BIN)/kvswarm cost-of $(FAULT) $(SCENARIO) $(LOAD) --run-time $(RUN_TIME) $(ARGS)

web: setup ## the same from Locust's web page on PORT: choose, press Start, watch
	$(BIN)/kvswarm web --scenario $(SCENARIO) $(LOAD) $(OPEN) --port $(PORT) $(ARGS)

master: setup ## the page on PORT, for workers on other machines: they connect to port 5557 of this one
	$(BIN)/kvswarm master --scenario $(SCENARIO) --target $(TARGET) $(if $(MODEL),--model $(MODEL)) --port $(PORT) $(ARGS)

worker: setup ## WORKERS worker processes for the master on machine MASTER, until it ends
	$(BIN)/kvswarm worker $(MASTER) --workers $(WORKERS) $(ARGS)

report: setup ## print the tables of RUN again
	$(BIN)/kvswarm report $(RUN) $(ARGS)

test: setup ## all tests, the ones against a real llama.cpp server included; those that are marked timing by themselves
	$(BIN)/python -m pytest -m "not timing" -n $(JOBS) --no-loadscope-reorder $(ARGS) || [ $$? = $(NO_TESTS) ]
	$(BIN)/python -m pytest -m timing $(ARGS) || [ $$? = $(NO_TESTS) ]

test-engines: setup ## the same contract against the real server of ENGINE (installed under .cache/, up to 3 GB each)
	$(BIN)/python -m pytest tests/contract --engine $(ENGINE) $(ARGS)

lint: setup ## ruff and mypy
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy

bench: setup ## how exact the client's times are, what a stream costs it, what a simulated engine can send, how exact an open loop is
	$(BIN)/python tests/bench/client_accuracy.py $(ARGS)
	$(BIN)/python tests/bench/simulator_speed.py && $(BIN)/python -m tests.bench.open_loop

lock: ## pin the newest packages that pyproject.toml allows (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes --upgrade --quiet --no-header --no-emit-package xllamacpp --output-file requirements.lock
	uv pip compile pyproject.toml --extra embedded --universal --python-version 3.11 --generate-hashes --quiet --no-annotate | sed -n '/^xllamacpp==/,/[^\\]$$/p' > requirements-embedded.lock

clean: ## remove .venv and all caches in this folder; results/ stays
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
