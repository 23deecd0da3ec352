# The ways into this repository. `make` lists them. They need Rust, a C compiler and make. The tests also need curl, the server
# programs of PostgreSQL 13 or later, and nginx; what a target needs beyond that stands in its line.

CARGO ?= cargo

.DEFAULT_GOAL := help
.PHONY: help run build test test-erp test-breaks bench-faults lint lint-format lint-code lint-docs lint-dependencies openapi check-contract fuzz-api fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build the service and serve orders from a SQLite file, on http://127.0.0.1:8080
	$(CARGO) run --locked -- serve

build: ## build the service without running it
	$(CARGO) build --locked

test: ## run all tests and a short mix of faults, on both databases (needs curl; installs PostgreSQL and nginx where it may)
	@sh tests/tools/need-postgres.sh
	@sh tests/tools/need-bench.sh
	@CARGO="$(CARGO)" sh tests/tools/run-tests.sh
	$(CARGO) test --locked --quiet --test bench -- --short

bench-faults: ## break the service for MINUTES (30) and write docs/fault-report.md; SEED repeats a run
	@sh tests/tools/need-postgres.sh
	@sh tests/tools/need-bench.sh all
	$(CARGO) test --locked --test bench -- --minutes $(or $(MINUTES),30) $(if $(SEED),--seed $(SEED)) --report docs/fault-report.md

test-erp: ## run the tests against a real ERP, Tryton (sets it up below target; needs Python 3.11 or later)
	@sh tests/tools/need-postgres.sh
	@sh tests/tools/need-tryton.sh
	@CARGO="$(CARGO)" sh tests/tools/run-tests.sh --test real_erp

test-breaks: ## break the service on purpose, in a build of its own kind, and see that the tests notice each break
	@sh tests/tools/need-postgres.sh
	@CARGO="$(CARGO)" sh tests/tools/run-tests.sh --features deliberate-breaks --test history

lint: lint-format lint-code lint-docs lint-dependencies ## check format, code, docs and dependencies

lint-format: ## check that the code is formatted
	@sh tests/tools/need-component.sh rustfmt
	$(CARGO) fmt --check

lint-code: ## check the code with clippy; a warning is an error
	@sh tests/tools/need-component.sh clippy
	$(CARGO) clippy --locked --all-targets -- --deny warnings
	$(CARGO) clippy --locked --test real_erp -- --deny warnings
	$(CARGO) clippy --locked --features deliberate-breaks --bins --test history -- --deny warnings

lint-docs: ## check that the documentation of the code builds without a warning
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --locked --no-deps --document-private-items

lint-dependencies: ## look for unused and for vulnerable dependencies
	@CARGO="$(CARGO)" sh tests/tools/check-dependencies.sh

openapi: ## write openapi/openapi.json anew from the code
	$(CARGO) run --locked --quiet -- openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json

check-contract: ## lint the contract document and compile a TypeScript client made of it (needs Node.js and npm)
	@sh tests/tools/check-contract.sh

fuzz-api: ## fuzz the running service by its own contract document (needs Python 3; FUZZ_DATABASE_URL adds PostgreSQL)
	@CARGO="$(CARGO)" sh tests/tools/fuzz-api.sh

fmt: ## format the code
	@sh tests/tools/need-component.sh rustfmt
	$(CARGO) fmt
