# Two commands do everything on a fresh machine: `make demo` (the main job) and `make test`.
# `make test-long` is `make test` and then `make rest`: what no person waits for at every change.
# Each installs what it needs; as root also missing Debian packages, otherwise it names them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests run side by side; more than four servers at once measure each other more than themselves.
WORKERS ?= $(shell cpus=$$(nproc); echo $$((cpus < 4 ? cpus : 4)))
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

# Installs a Debian package as root; tells anybody else how to.
apt = { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends $(1) >/dev/null; } \
  || { echo "error: package $(1) is missing"; echo "hint: sudo apt-get install $(1)"; exit 1; }

.PHONY: demo quick test test-long rest check gates install build packages lock reference clean help

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: build ## The main job: load TPC-C, run three stages, write a report (ARGS=--quick: shorter)
	$(BIN)/pgdyno run plans/demo.toml $(ARGS)

quick: build ## The demo's short version
	$(BIN)/pgdyno run plans/demo.toml --quick

test: packages gates ## The tests of every day, on real servers and in a real browser
	$(PYTEST) -m "not long"

test-long: test ## All tests: `make test` and what it leaves out
	$(MAKE) rest

rest: packages build ## The tests marked `long`, which `make test` leaves out
	$(PYTEST) -m long

check: gates ## Format, lint, types, layers, unit tests: under 90 s once built
	$(PYTEST) -m "not cluster and not method and not browser and not long" \
	  --ignore tests/attack

gates: build
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	cargo test --quiet --workspace --locked
	$(BIN)/ruff format --check --quiet python tests benches
	$(BIN)/ruff check --quiet python tests benches
	$(BIN)/mypy
	$(BIN)/stubtest pgdyno._core --mypy-config-file pyproject.toml
	$(BIN)/lint-imports

install: $(VENV)/installed ## The virtual environment with the locked dependencies

$(VENV)/installed: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than 3.11; set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(call apt,python3-venv)
	@echo "installing the locked dependencies (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	@touch $@

build: $(VENV)/built ## The Rust core in release mode

$(VENV)/built: $(VENV)/installed pyproject.toml $(RUST)
	@command -v cargo >/dev/null \
	  || { echo "error: no cargo; install a Rust toolchain (rustup.rs), 1.88 or newer"; exit 1; }
	@echo "building the Rust core in release mode (once, some minutes)"
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet >/dev/null
	@touch $@

# Debian packages of the tests and of `pgdyno storage`: an installed PostgreSQL, a pooler,
# certificates, a browser, what makes file systems, a load for disks, and compilers.
packages: ## Debian packages that commands and tests want, as root
	@[ -x /usr/lib/postgresql/15/bin/postgres ] || $(call apt,postgresql-15)
	@[ -x /usr/sbin/pgbouncer ] || $(call apt,pgbouncer)
	@[ -x /usr/bin/openssl ] || $(call apt,openssl)
	@[ -x /usr/bin/chromium ] || $(call apt,chromium)
	@[ -x /usr/sbin/mkfs.xfs ] || $(call apt,xfsprogs)
	@[ -x /usr/sbin/sfdisk ] || $(call apt,fdisk)
	@[ -x /usr/bin/fio ] || $(call apt,fio)
	@[ -x /usr/bin/gcc ] || $(call apt,gcc libc6-dev)
	@[ -x /usr/bin/clang ] || $(call apt,clang)

lock: ## Resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock

reference: build ## Write the generated pages of docs/reference
	$(BIN)/python -m pgdyno.plan.reference > docs/reference/plan.md
	$(BIN)/python -m pgdyno.load.reference > docs/reference/tpcc.md
	$(BIN)/python -m pgdyno.catalog.reference > docs/reference/knobs.md
	$(BIN)/python -m pgdyno.report.mistakes > docs/reference/mistakes.md

clean: ## Remove what was built; clusters and fixtures stay (see PGDYNO_HOME)
	rm -rf $(VENV) target python/pgdyno/_core*.so
