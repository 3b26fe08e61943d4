# make help lists the targets. Everything is built in .venv; nothing else on the machine is
# touched but packages that a build needs, which root installs after saying so.

PYTHON ?= python3
VENV   := .venv
BIN    := $(CURDIR)/$(VENV)/bin
T      ?= 60

export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

COMPILED := _fastpath.pyx $(wildcard pktgen_cli/fastpath/*)

.PHONY: help build demo test check bench asan fuzz clean system

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: $(VENV)/built  ## make .venv and compile the extension in place

demo: build  ## send over a veth pair (root), or into a capture file
	@$(BIN)/pktgen demo configs/udp.cfg

test: $(VENV)/test  ## run the tests; those that need root skip without it
	@$(BIN)/python -m pytest

check: $(VENV)/check  ## ruff, cython-lint, mypy --strict, stubtest, import-linter
	ruff check .
	cython-lint _fastpath.pyx pktgen_cli/fastpath
	mypy
	python -m mypy.stubtest --allowlist tests/stubtest.txt pktgen_cli._fastpath
	lint-imports

bench: $(VENV)/test  ## ratios against a bare C loop and trafgen (root; ARGS=--pacing for the pace table)
	@$(BIN)/python tests/bench/run.py $(ARGS)

asan: $(VENV)/test  ## engine tests with address and undefined-behaviour sanitizers
	@sh tests/asan.sh

fuzz: $(VENV)/fuzz  ## fuzz lexer, parser and compiler for T=60 seconds
	@$(BIN)/python tests/fuzz/fuzz_compile.py -max_total_time=$(T) -rss_limit_mb=4096

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist *.egg-info _fastpath.c pktgen_cli/*.so

# What the build needs of the system: named by package, looked for by effect.
system:
	@need=""; \
	command -v $(PYTHON) >/dev/null || need="$$need python3"; \
	$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || need="$$need python3-venv"; \
	$(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null \
		|| need="$$need python3-dev"; \
	command -v cc >/dev/null || need="$$need gcc"; \
	printf '#include <stdlib.h>\n#include <linux/if_packet.h>\n' | cc -E - >/dev/null 2>&1 \
		|| need="$$need libc6-dev linux-libc-dev"; \
	[ -z "$$need" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing with apt-get:$$need"; \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get -qq update && apt-get -qq install -y --no-install-recommends $$need >/dev/null; \
	else \
		echo "missing:$$need"; echo "install with: sudo apt-get install$$need"; exit 1; \
	fi

$(VENV)/made: | system
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip -q install 'setuptools>=77' 'cython>=3.1'
	@touch $@

$(VENV)/built: $(VENV)/made pyproject.toml $(COMPILED)
	@echo "compiling"
	@$(BIN)/pip -q install --no-build-isolation -e .
	@touch $@

$(VENV)/test $(VENV)/check $(VENV)/fuzz: $(VENV)/%: $(VENV)/built
	@echo "installing what '$*' needs"
	@$(BIN)/pip -q install --no-build-isolation -e '.[$*]'
	@touch $@
