# Two commands do everything on a fresh machine: `make demo` (the main job) and `make test`.
# `make test-long` is `make test` and then `make rest`: what no person waits for at every change.
# Each installs what it needs; as root also missing Debian packages, otherwise it names them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
DIST ?= dist
# Tests run side by side, and wait for servers and browsers more than they compute: with one more
# than there are, few CPUs are busy. More than four servers at once measure each other.
WORKERS ?= $(shell cpus=$$(nproc); echo $$((cpus < 4 ? cpus + 1 : 4)))
# Our own order, by what takes longest: xdist's is by how many tests a group has.
PYTEST := $(BIN)/pytest -q -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
EVERY_DAY := "not long and not document and not wide"
# Downloading, installing and compiling go side by side: on a new machine that is most of the wait.
MAKEFLAGS += --jobs=3
# Cargo has its own jobs: those of make are no file descriptors that it could read.
MATURIN := MAKEFLAGS= VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin
# Bytecode is kept: where an image forbids it, every start of ours would compile for a second.
export PYTHONDONTWRITEBYTECODE :=
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)

# Installs Debian packages as root, one make at a time; tells anybody else how to.
apt = { [ "$$(id -u)" = 0 ] && flock Makefile sh -c "apt-get update -qq && \
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null"; } \
  || { echo "error: not installed: $(1)"; echo "hint: sudo apt-get install $(1)"; exit 1; }

.PHONY: demo quick test every-day documents wide test-long rest gates check rust-gates python-gates rust-tests install build packages wheel lock reference clean help

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: build ## The main job: load TPC-C, run two stages, write a report (ARGS=--quick: shorter)
	$(BIN)/pgdyno run plans/demo.toml $(ARGS)

quick: build ## The demo's short version
	$(BIN)/pgdyno run plans/demo.toml --quick

# The core's tests are compiled and run in what time the others leave, which often wait.
test: packages build ## The tests of every day, on real servers and in a real browser
	@$(MAKE) --no-print-directory every-day rust-tests

every-day: $(VENV)/bytecode
	$(PYTEST) -m $(EVERY_DAY) $(ARGS)

documents: packages build ## Guides and the notebook carried out, every page looked at
	$(PYTEST) -m "document and not long" $(ARGS)

wide: packages build ## What CI runs after `make test`: further cases, guides, notebook, pages
	$(PYTEST) -m "(wide or document) and not long" $(ARGS)

test-long: ## All tests: `make test`, and then what it leaves out
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory rest

rest: packages gates ## What `make test` leaves out: the gates, and the tests marked `long`
	$(PYTEST) -m "long or document or wide" $(ARGS)

gates: rust-gates python-gates ## Format, lint, types, layers

check: gates ## Format, lint, types, layers, unit tests: under 90 s once built
	cargo test --quiet --workspace --locked
	$(PYTEST) -m "not cluster and not method and not browser and not long and not document and not wide" \
	  --ignore tests/attack $(ARGS)

rust-gates: build
	cargo fmt --all --check
	MAKEFLAGS= cargo clippy --quiet --workspace --all-targets --locked -- -D warnings

python-gates: build
	$(BIN)/ruff format --check --quiet python tests benches
	$(BIN)/ruff check --quiet python tests benches
	$(BIN)/mypy
	$(BIN)/stubtest pgdyno._core --mypy-config-file pyproject.toml
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/hadolint Containerfile

rust-tests:
	@MAKEFLAGS= nice -n 19 cargo test --quiet --workspace --locked --lib --tests

install: $(VENV)/installed ## The virtual environment with the locked dependencies

# What compiles comes first and alone, so that the rest is installed while it works.
$(VENV)/maturin.lock: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than 3.11; set PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(call apt,python3-venv)
	@echo "installing the locked dependencies (once)"
	@$(PYTHON) -m venv $(VENV)
	@awk '/^maturin==/, !/\\$$/' requirements.lock > $@.new
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r $@.new
	@mv $@.new $@

$(VENV)/installed: $(VENV)/maturin.lock
	@$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements.lock
	@touch $@

build: $(VENV)/built ## The Rust core in release mode

# `develop`, which installs what was compiled, must wait for pip.
target/compiled: $(VENV)/maturin.lock pyproject.toml $(RUST)
	@command -v cargo >/dev/null \
	  || { echo "error: no cargo; install a Rust toolchain (rustup.rs), 1.88 or newer"; exit 1; }
	@echo "compiling the Rust core in release mode (once, a minute or two)"
	@$(MATURIN) build --release --locked --quiet --out target/wheels >/dev/null
	@touch $@

$(VENV)/built: $(VENV)/installed target/compiled
	@$(MATURIN) develop --release --locked --quiet >/dev/null
	@touch $@

# Once, while the core's tests are compiled: workers begin together, and each would compile all of it.
$(VENV)/bytecode: | $(VENV)/built
	@$(BIN)/pytest -q --collect-only -m $(EVERY_DAY) >/dev/null 2>&1 || true  # told by the tests
	@touch $@

# What the tests and `pgdyno storage` want: an installed PostgreSQL, a pooler, certificates, a browser,
# what makes file systems and partitions, a load for disks, and compilers. A file, and its package.
WANTED := /usr/lib/postgresql/15/bin/postgres:postgresql-15 /usr/sbin/pgbouncer:pgbouncer \
  /usr/bin/openssl:openssl /usr/bin/chromium:chromium /usr/sbin/mkfs.xfs:xfsprogs \
  /usr/sbin/sfdisk:fdisk /usr/bin/fio:fio /usr/bin/gcc:gcc /usr/include/stdio.h:libc6-dev \
  /usr/bin/clang:clang /usr/bin/pdftoppm:poppler-utils /usr/bin/perf:linux-perf \
  /usr/sbin/ip:iproute2

# A server of SSH, for tests: installed, it would begin to serve the machine.
$(VENV)/sshd: | $(VENV)/installed
	@rm -rf $@.new && mkdir $@.new
	@fetched() { apt-get download -qq openssh-server libwrap0 2>/dev/null; }; \
	if (cd $@.new && { fetched || { apt-get update -qq 2>/dev/null && fetched; }; } \
	  && for one in *.deb; do dpkg -x "$$one" . || exit 1; done && rm -- *.deb); \
	then mv $@.new $@; else echo "note: no server of SSH is there for tests, which are skipped"; fi

packages: $(VENV)/sshd ## Debian packages that commands and tests want, as root
	@missing=; for one in $(WANTED); do \
	  [ -e "$${one%%:*}" ] || missing="$$missing $${one#*:}"; done; \
	  [ -z "$$missing" ] || $(call apt,$$missing)

wheel: install ## A wheel that needs no checkout and no compiler, in dist/
	$(BIN)/maturin build --release --locked --quiet --out $(DIST)

lock: ## Resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-emit-find-links --quiet -o requirements.lock

reference: build ## Write the generated pages of docs/reference
	$(BIN)/python -m pgdyno.plan.reference > docs/reference/plan.md
	$(BIN)/python -m pgdyno.loader.reference > docs/reference/tpcc.md
	$(BIN)/python -m pgdyno.catalog.reference > docs/reference/knobs.md
	$(BIN)/python -m pgdyno.analysis.mistakes > docs/reference/mistakes.md
	$(BIN)/python -m pgdyno.live.reference > docs/reference/metrics.md
	$(BIN)/python -m pgdyno.imports.reference > docs/reference/traps.md
	$(BIN)/python -m pgdyno.api.reference > docs/reference/run-file.md

clean: ## Remove what was built; clusters and fixtures stay (see PGDYNO_HOME)
	rm -rf $(VENV) target python/pgdyno/_core*.so
