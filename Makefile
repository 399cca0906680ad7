# The front door. `make` alone says what there is.

SHELL := /bin/bash
CARGO ?= cargo
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := frames hello notation block_decoder large_decoder raptorq_object encoding_plan window_decoder connection peer published dccp sctp channels tcp flute scenario trace datagram syn token message manifest name tree journal url control sink endpoint cast group live swarm records sip

export FILE FUZZ_SECONDS

# Tests wait for networks more than for processors.
export RUST_TEST_THREADS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 6)))

# What is built once, on a machine that is thrown away, need not be kept for being built again, and
# no debugger looks at it.
ifdef CI
export CARGO_INCREMENTAL := 0
export CARGO_PROFILE_DEV_DEBUG := 0
endif

.DEFAULT_GOAL := help
.PHONY: help demo test python lint bench docs fuzz miri soak build viewer page package package-install package-static package-deb package-container clean prerequisites

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: prerequisites ## Watch Fontis race TCP and QUIC over a lossy, long path; FILE= chooses what with
	@scripts/demo.sh

test: lint ## Check everything: lint, then every test
	@scripts/require.sh strace=strace faketime=faketime tshark=tshark baresip=baresip-core || echo "going on: what needs them is skipped, and says so"
	$(CARGO) test --workspace --locked --tests
	$(CARGO) test --workspace --locked --doc
	scripts/viewer.sh test
	scripts/python.sh test

python: prerequisites ## Build the Python package into target/venv, with what its tests need
	scripts/python.sh install

lint: viewer ## Check format, house rules, lints, documentation, licences, and that the pure crates need no machine
	python3 scripts/house.py
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path peers/Cargo.toml
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	python3 scripts/dependencies.py check
	@for script in scripts/*.sh .ci/run; do bash -n $$script || exit 1; done
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
		$(CARGO) deny --locked check licenses bans sources || exit 1; \
		if $(CARGO) deny fetch >/dev/null 2>&1; then \
			$(CARGO) deny --locked check advisories; \
		else \
			echo "lint: advisories not checked: their database cannot be fetched"; \
		fi; \
	else \
		echo "lint: licences not checked: cargo-deny is not installed (cargo install cargo-deny --locked)"; \
	fi
	scripts/python.sh lint
	scripts/viewer.sh check

bench: viewer ## Measure, and keep the results under results/ with the date
	scripts/bench.sh

docs: build ## Build the documentation of every crate, the manual page and the shell completions
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked
	@mkdir -p target/man target/completions
	target/release/fontis man target/man
	@for shell in bash zsh fish; do target/release/fontis completions $$shell > target/completions/fontis.$$shell; done
	@echo "see target/doc/fontis/index.html, target/man and target/completions"

fuzz: prerequisites ## Feed hostile input to every parser and state machine, FUZZ_SECONDS each (60), and say which share of the reading code that ran
	@scripts/fuzz.sh $(FUZZ_TARGETS)
	@python3 scripts/fuzz_coverage.py

miri: prerequisites ## Run the tests of the codes' kernels in Miri, which finds unsafe code that does what it must not
	@scripts/miri.sh

soak: prerequisites ## Run the random tests at full length, or SOAK_PART=100 for a hundredth of it; a failure names its seed
	@scripts/soak.sh

viewer: prerequisites ## Build the pages of fontis view, which the command takes in
	@scripts/viewer.sh build
	scripts/wasm-check.sh

page: build ## Build the front page: the playground as one file, target/page/index.html
	@mkdir -p target/page
	$${CARGO_TARGET_DIR:-target}/release/fontis view --playground --export target/page/index.html

build: viewer ## Build the fontis command, optimised
	$(CARGO) build --release --locked -p fontis-cli

package: viewer ## Make what is given away: cargo install, static binary, Debian package, container image; each tried in an empty root
	@scripts/package.sh install static deb container sbom

package-install package-static package-deb package-container: viewer
	@scripts/package.sh $(@:package-%=%)

clean: ## Remove what was built
	$(CARGO) clean

prerequisites:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install rustup, which brings the version that rust-toolchain.toml names" >&2; exit 1; }
	@scripts/require.sh cc=build-essential python3=python3
