# Two commands on a fresh machine: `make demo` and `make test`. They require Debian 12, Python 3.11, a Rust toolchain, gcc
# and make, and install everything else that they need into .venv and target.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help demo test check-texts test-slow fuzz bench reproduce reproduce-quick multiverse infer install clean docs site playground release articles

help:            ## this list
	@grep -hE '^[a-z-]+: *.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 17

demo:            ## set up everything, run the demonstration, end with a table and a report
	@tools/demo.sh

test:            ## the fast lane: format, lint, bare-metal build, Rust and Python tests
	@tools/test.sh

check-texts:     ## what checks texts alone, in a minute: documents, prose, citations, manual pages
	@tools/check_texts.sh

test-slow:       ## the long lane: thousand-seed kits, seeded mutations, comparison runs with ns-2
	@tools/test-slow.sh

fuzz:            ## feed arbitrary bytes to the live router and its parser, FUZZ_SECONDS (60) each; needs nightly and cargo-fuzz
	@tools/fuzz.sh $(FUZZ_SECONDS)

bench:           ## instructions, memory, ratios to ns-2 and ns-3: half an hour on a quiet machine
	@python3 benches/run.py --write-docs

reproduce:       ## run the papers again, 20 seeds: tables, figures and scorecards into papers/; resumable
	@tools/reproduce.sh

reproduce-quick: ## a small version of `make reproduce` in two minutes, into runs/quick
	@tools/reproduce.sh --quick

multiverse:      ## score every reading of what the papers leave open; takes hours, resumable
	@tools/reproduce.sh multiverse

infer:           ## search for the readings that fit half of what the papers publish; takes hours, resumable
	@tools/reproduce.sh infer

install:         ## .venv with aqmlab built and installed
	@tools/install.sh

docs: install    ## rewrite the generated parts of the documentation: tables, printed texts, figures
	@UPDATE_SNAPSHOTS=1 cargo test -q -p aqmlab-qdisc -p aqmlab-scenario --test chapters --test reference
	@$(BIN)/python tools/pages.py
	@$(BIN)/python tools/which_aqm.py
	@$(BIN)/python tools/then_and_now.py
	@$(BIN)/python tools/outputs.py

site:            ## the documentation as a searchable site in target/site/html
	@tools/install.sh site
	@$(BIN)/python tools/site_pages.py

playground:      ## the simulator in a web page, as static files in target/playground
	@python3 tools/playground.py

articles:        ## each scored paper as an article in the form of ReScience C, in target/articles
	@tools/install.sh
	@$(BIN)/python tools/articles.py

release:         ## build and check all packages into dist/: wheels, sdist, crates, hashes; resumable
	@tools/release.sh

clean:           ## remove what was built
	rm -rf target $(VENV)
