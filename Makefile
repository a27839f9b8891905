# SPDX-License-Identifier: BSD-2-Clause
# A thin front of Meson: each target installs the Debian packages that it needs when they are
# missing (as root, or with sudo), and then does its work.
#
#   make run      build, and run the main job (no hardware, no privileges needed)
#   make test     build, and run every test that this machine can run
#   make build    build/holdoff
#   make bench    measure against other programs; results are described in docs/benchmarks.md
#   make fuzz     run each fuzzer for FUZZ_SECONDS (60)
#   make mutants  would the router's tests notice? Its code is made wrong, line by line (20 minutes)
#   make install  to PREFIX (/usr/local), under DESTDIR if that is set
#   make format   clang-format over the sources

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
BUILD := build

.PHONY: all build run test bench fuzz mutants install format clean

all: build

$(BUILD)/build.ninja:
	scripts/packages.sh build
	meson setup $(BUILD) --prefix=$(PREFIX)

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

run: build
	scripts/run.sh $(BUILD)/holdoff

test:
	scripts/packages.sh build test
	tests/run.sh

bench:
	scripts/packages.sh build bench
	bench/run.sh

fuzz:
	scripts/packages.sh build test
	tests/fuzz/run.sh $(FUZZ_SECONDS)

mutants:
	scripts/packages.sh build test
	tests/mutants/route.py

install: build
	meson configure $(BUILD) --prefix=$(PREFIX)
	DESTDIR=$(DESTDIR) meson install -C $(BUILD)

format:
	scripts/packages.sh build
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf build build-*
