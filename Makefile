# SPDX-License-Identifier: MIT
#
# The front door: every build, test and install starts here (`make help`).
# Recipes are short; the work stands in scripts/, tests/ and userspace/.
# Everything is built under $(O); nothing is written among the sources.

KERNEL  ?= 6.1
O       ?= $(or $(KXFER_BUILD),build)
# How user space is built: plain, or coverage with counts (scripts/build-userspace).
FLAVOUR ?= plain
JOBS    ?= $(shell nproc)

# An absolute path, because recipes change the directory.
override O := $(abspath $(O))
export KXFER_BUILD := $(O)

# What make check runs on: User-mode Linux of both series, then Debian's kernels in emulated
# machines; or only these, where scripts/vm/choose-kernels finds User-mode Linux slow.
UM_KERNELS   := 6.1-um 6.12-um
CACHE        := $(or $(KXFER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kxfer)
KSELFTEST    := $(CACHE)/kernels/6.12/source/tools/testing/selftests
TESTS_INSTALL = $(O)/tests/install

# What emulated CPUs under these checks can do in reasonable time.
SMP_KERNELS ?= 6.12-debug 6.12-kcsan
SMP_TESTS   ?= uapi:* data:content data:notify data:path data:transfer lifetime:* perm:* fuzz:ioctl leaks:*
SMOKE_TESTS ?= uapi:smoke uapi:submit data:notify lifetime:revoke lifetime:module leaks:*
# What make check runs of tests/pair, on two machines. Each word boots them once: all but the
# longest tests of data, and five faults.
PAIR_TESTS  ?= data:[ejmp]* faults:@(cut|server_killed)*
# Other architectures, one of them big endian, and PREEMPT_RT.
ARCH_KERNELS ?= 6.1-arm64 6.1-s390x 6.1-rt
# What such a check sees best: memory that several hold, and its end.
DEBUG_SMOKE_TESTS ?= uapi:dedicated uapi:mailbox uapi:ring lifetime:dedicated lifetime:engine lifetime:long \
	lifetime:memory lifetime:revoke perm:long fault:delays storm:once leaks:*

# The group of scripts/setup that has what a guest with KERNEL needs; and those for
# measuring, beside bench: the kernel 7.2, the source of siw.
VM_GROUP    = $(if $(filter 6.1,$(KERNEL)),demo,$(if $(filter 7.2,$(KERNEL)),matrix,check))
SETUP_BENCH = set -e; for group in bench \
	$(if $(filter 7.2,$(KERNEL)),matrix,$(if $(filter siw,$(PROVIDER)),check)); do scripts/setup $$group; done

SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

##@ Build
.PHONY: all kmod siw siw-dma tool userspace fio libfabric
all: kmod tool ## the module, the library and the tool (KERNEL=6.1, 6.12, 7.2 or running)

kmod: ## kxfer.ko and kxfer_bench.ko for KERNEL
	@scripts/build-kmod $(KERNEL) $(O) kxfer -s -j$(JOBS)
	@scripts/build-kmod $(KERNEL) $(O) kunit -s -j$(JOBS)

siw: ## siw.ko for KERNEL, which Debian's kernels leave out, with scripts/siw.patch
	@scripts/build-kmod $(KERNEL) $(O) siw -s -j$(JOBS)

siw-dma: ## siw.ko for KERNEL that maps its memory, for tests
	@scripts/build-kmod $(KERNEL) $(O) siw-dma -s -j$(JOBS)

tool: ## the library and the tool
	@scripts/build-userspace $(O) kxfer $(FLAVOUR)

userspace: ## these and their unit tests
	@scripts/build-userspace $(O) all $(FLAVOUR)

fio: ## an I/O engine for the fio that is installed, build/fio/libfio-kxfer.so
	@scripts/setup fio
	@scripts/build-fio $(O)

libfabric: ## a provider for the libfabric that is installed, build/libfabric/libkxfer-fi.so
	@scripts/setup libfabric
	@LIBFABRIC=$(LIBFABRIC) scripts/build-libfabric $(O)

##@ See it work
.PHONY: demo vm vm2
demo: ## install what is missing, build, and transfer a file in a virtual machine
	@scripts/vm/demo

vm: ## a shell in a virtual machine with kxfer on soft RoCE (KERNEL)
	@scripts/setup $(VM_GROUP)
	@$(MAKE) kmod tool
	@scripts/vm/run --shell --kernel $(KERNEL)

vm2: ## a shell on each of two of them that reach each other (KERNEL, PROVIDER; NODE=1 or 2: one)
	@scripts/setup $(VM_GROUP)
	@$(MAKE) kmod tool $(if $(filter siw,$(PROVIDER)),siw)
	@KERNEL=$(KERNEL) scripts/vm/two $(O) $(NODE)

##@ Test
.PHONY: test check check-um check-modules check-matrix check-debug check-debug-smoke check-smp
.PHONY: check-smp-smoke check-arch check-pair
.PHONY: check-unit check-asan check-model check-fio check-bpftrace check-libfabric check-fabtests
.PHONY: check-package fuzz fuzz-parsers
.PHONY: coverage storm kselftest-install mutants lint
test: ## one test, or a few, by name: T=uapi:smoke, T='data:* perm:keys' (KERNEL, PROVIDER)
	@scripts/setup $(if $(filter 7.2,$(KERNEL)),matrix,check)
	@KERNEL=$(KERNEL) TESTS="$(T)" scripts/vm/test $(O)

check: ## all tests, on 6.1 and 6.12, rxe and siw (KERNELS, PROVIDERS, TESTS narrow it down)
ifdef KERNELS
	@$(MAKE) check-modules userspace kselftest-install
	@status=0; KERNELS="$(KERNELS)" scripts/vm/check $(O) || status=1; \
		$(if $(TESTS)$(filter-out $(words $(filter 6.1 6.12,$(KERNELS))),2),, \
		PAIRS="6.1-rxe 6.12-siw" TESTS="$(PAIR_TESTS)" tests/pair/run $(O) || status=1;) \
		exit $$status
else
	@kernels=$$(scripts/vm/choose-kernels) && $(MAKE) check KERNELS="$${kernels:?}"
endif

check-um: KERNELS ?= $(UM_KERNELS)
check-um: ## the part of it on User-mode Linux, without building the tool: for a first look
	@$(MAKE) check-modules kselftest-install KERNELS="$(filter %-um,$(KERNELS))"
	@CHECK_NAME=check-um KERNELS="$(filter %-um,$(KERNELS))" UNIT=no scripts/vm/check $(O)

check-modules:
	@scripts/setup $(if $(filter 7.2,$(KERNELS)),matrix,check)
	@set -e; for kernel in $(KERNELS); do \
		case $$kernel in *-um) scripts/build-kernel $$kernel ;; esac; \
		echo "# building the modules for $$kernel"; \
		$(MAKE) kmod siw KERNEL=$$kernel; \
		[ ! -e tests/guest/dma/siw-$$kernel.patch ] || $(MAKE) siw-dma KERNEL=$$kernel; done

check-matrix: ## all of them everywhere, and on Linux 7.2 as well, from Debian forky
	@WHOLE=yes $(MAKE) check KERNELS="6.1 6.12 7.2"

check-debug: ## the same tests on a kernel that checks itself: KASAN, lockdep, kmemleak ...
	@scripts/build-kernel 6.1-debug
	@$(MAKE) kmod KERNEL=6.1-debug
	@$(MAKE) userspace kselftest-install
	@CHECK_NAME=check-debug KERNELS=6.1-debug UNIT=no scripts/vm/check $(O)

check-debug-smoke: ## some minutes of it, if its kernel is built already
	@if scripts/build-kernel --cached 6.1-debug; then \
		$(MAKE) check-debug TESTS="$(DEBUG_SMOKE_TESTS)" PROVIDERS=rxe; \
	else echo "ok 1 check-debug # SKIP the kernel 6.1-debug is not built; make check-debug builds it"; fi

check-smp: ## two CPUs: KASAN, lockdep, sleeping in atomic context; then KCSAN (slow)
	@set -e; for kernel in $(SMP_KERNELS); do \
		scripts/build-kernel $$kernel; $(MAKE) kmod KERNEL=$$kernel; done
	@$(MAKE) userspace kselftest-install
	@set -e; for kernel in $(SMP_KERNELS); do \
		CHECK_NAME=check-smp KERNELS=$$kernel CHECK_TIMEOUT=3600 UNIT=no \
			TESTS="$${TESTS:-$(SMP_TESTS)}" scripts/vm/check $(O); done

check-smp-smoke: ## five minutes of it, if its kernel is built already
	@if scripts/build-kernel --cached 6.12-debug; then \
		$(MAKE) check-smp SMP_KERNELS=6.12-debug SMP_TESTS="$(SMOKE_TESTS)" PROVIDERS=rxe; \
	else echo "ok 1 check-smp # SKIP the kernel 6.12-debug is not built; make check-smp builds it"; fi

check-arch: ## Linux 6.1 for arm64, for s390x (big endian) and with PREEMPT_RT, rxe (ARCH_KERNELS, TESTS)
	@scripts/setup arch
	@set -e; for kernel in $(ARCH_KERNELS); do $(MAKE) kmod KERNEL=$$kernel; done
	@$(MAKE) kselftest-install
	@set -e; for kernel in $(filter-out 6.1-rt,$(ARCH_KERNELS)); do \
		scripts/vm/arch/build $$kernel $(O); $(MAKE) siw KERNEL=$$kernel; done
	@status=0; CHECK_NAME=check-arch KERNELS="$(ARCH_KERNELS)" PROVIDERS=rxe CHECK_TIMEOUT=1800 UNIT=no \
		TESTS="$${TESTS:-$$(scripts/vm/arch/plain $(O) | tr '\n' ' ')}" scripts/vm/check $(O) || status=1; \
		$(if $(filter-out $(ARCH_KERNELS),6.1-arm64 6.1-s390x),,scripts/vm/arch/pair $(O) || status=1;) \
		exit $$status

check-pair: ## two machines on a wire, and what goes wrong between them (KERNELS, PROVIDERS, TESTS)
	@$(MAKE) check-modules KERNELS="$(or $(KERNELS),6.1 6.12)"
	@$(MAKE) userspace kselftest-install
	@KERNELS="$(or $(KERNELS),6.1 6.12)" tests/pair/run $(O)

check-unit: ## unit tests on this machine, no virtual machine
	@scripts/setup check
	@$(MAKE) userspace
	@ctest --test-dir $(O)/userspace --output-on-failure --timeout 120

check-fio: ## fio reads and writes through its engine, and its examples run (KERNEL, PROVIDER)
	@scripts/setup check
	@$(MAKE) kmod tool fio kselftest-install $(if $(filter siw,$(PROVIDER)),siw)
	@CHECK_NAME=check-fio KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) UNIT=no \
		TESTS="$(or $(TESTS),cli:fio.sh cli:other_tools.sh)" scripts/vm/check $(O)

check-bpftrace: ## the scripts for bpftrace in a guest (KERNEL, PROVIDER)
	@scripts/setup trace
	@$(MAKE) kmod tool kselftest-install $(if $(filter siw,$(PROVIDER)),siw)
	@mkdir -p $(O)/bpftrace
	@ln -sfn $(CURDIR)/scripts/bpftrace $(O)/bpftrace/scripts
	@ln -sf $$(command -v bpftrace) $(O)/bpftrace/bpftrace
	@CHECK_NAME=check-bpftrace KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) UNIT=no \
		TESTS="$(or $(TESTS),cli:bpftrace.sh)" scripts/vm/check $(O)

check-libfabric: ## libfabric's programs, Open MPI, own tests (KERNEL, PROVIDER; NODES=2 or LIBFABRIC=source)
	@$(if $(and $(LIBFABRIC),$(filter 2,$(NODES))),echo "LIBFABRIC goes with one node" >&2; exit 2)
	@scripts/setup check
	@$(if $(LIBFABRIC),scripts/setup fabtests)
	@$(MAKE) kmod tool libfabric kselftest-install $(if $(filter siw,$(PROVIDER)),siw)
ifeq ($(NODES),2)
	@KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) TESTS="$(or $(TESTS),libfabric)" tests/pair/run $(O)
else
	@CHECK_NAME=check-libfabric KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) UNIT=no \
		TESTS="$(or $(TESTS),cli:libfabric.sh)" scripts/vm/check $(O)
endif

check-fabtests: ## libfabric's own tests over the provider, from their source (KERNEL, PROVIDER, NODES=2)
	@scripts/setup fabtests
	@$(MAKE) kmod tool libfabric kselftest-install LIBFABRIC= $(if $(filter siw,$(PROVIDER)),siw)
	@scripts/build-fabtests $(O)
ifeq ($(NODES),2)
	@KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) TESTS="$(or $(TESTS),fabtests)" tests/pair/run $(O)
else
	@CHECK_NAME=check-fabtests KERNELS=$(KERNEL) PROVIDERS=$(or $(PROVIDER),rxe) UNIT=no \
		TESTS=cli:fabtests.sh scripts/vm/check $(O)
endif

check-package: ## the packages, installed, upgraded and purged in a Debian, and on one with systemd; as root
	@scripts/setup $(VM_GROUP)
	@scripts/setup package
	@$(MAKE) kmod deb
	@tests/host/package/run $(O)
	@KERNEL=$(KERNEL) tests/host/package/systemd $(O)

check-asan: ## the unit tests under AddressSanitizer and UBSan; ends with ctest's sums
	@scripts/setup check
	@scripts/build-userspace $(O) all asan
	@UBSAN_OPTIONS=print_stacktrace=1 \
		ctest --test-dir $(O)/asan --output-on-failure --timeout 300

check-model: ## the order in memory of the completion ring: litmus tests, by Spin
	@scripts/setup lint
	@tests/host/model/run

fuzz-parsers: ## libFuzzer on pure parts and parsers, DURATION seconds each (60)
	@scripts/setup debug
	@tests/host/fuzz/libfuzzer $(O) $(or $(DURATION),60)

coverage: ## which lines of the module and the tool the tests run (TESTS, PROVIDERS)
	@scripts/setup debug
	@status=0; $(MAKE) check-debug O=$(O)/coverage FLAVOUR=coverage || status=$$?; \
		scripts/coverage $(O)/coverage && exit $$status

kselftest-install: ## the test collection as a tree for any machine (DESTDIR)
	@scripts/setup --check check
	@$(MAKE) -s -j$(JOBS) -C tests KSELFTEST=$(realpath $(KSELFTEST)) OUT=$(O)/tests/out \
		DEST=$(if $(DESTDIR),$(abspath $(DESTDIR)),$(TESTS_INSTALL)) install

mutants: ## is each of tests/mutants, a defect, caught by the tests?
	@scripts/setup check
	@tests/mutants/run

fuzz: ## fuzzers for a while (DURATION=600, FUZZ=ioctl, wire or delays, KERNEL, PROVIDER)
	@scripts/setup check
	@$(MAKE) kmod kselftest-install $(if $(filter siw,$(PROVIDER)),siw)
	@KERNEL=$(KERNEL) tests/guest/fuzz/run $(or $(FUZZ),all) $(or $(DURATION),600) $(FUZZ_ARGS)

storm: ## removal, reload, kills and shortage under load, for long (STORM, KERNEL, PROVIDER)
	@scripts/setup check
	@$(MAKE) kmod userspace kselftest-install $(if $(filter siw,$(PROVIDER)),siw)
	@KERNEL=$(KERNEL) tests/guest/storm/run $(STORM)

lint: ## style and static checks
	@scripts/setup lint
	@scripts/lint

##@ Measure
.PHONY: bench bench-compare bench-parity bench-wall
bench: ## perftest, floor, jobs side by side, in instructions (KERNEL, PROVIDER)
	@$(SETUP_BENCH)
	@$(MAKE) kmod userspace KERNEL=$(KERNEL) $(if $(filter siw,$(PROVIDER)),siw)
	@KERNEL=$(KERNEL) scripts/bench/run

bench-compare: ## what changed in that since the revision BASE
	@$(SETUP_BENCH)
	@KERNEL=$(KERNEL) scripts/bench/compare $(O) $(BASE)

bench-parity: ## is the engine verbs as good as perftest? within 3 %, in instructions (KERNEL)
	@$(SETUP_BENCH)
	@$(MAKE) kmod userspace KERNEL=$(KERNEL)
	@KERNEL=$(KERNEL) scripts/bench/parity

bench-wall: ## sessions side by side, by the clock, on two CPUs (KERNEL, PROVIDER)
	@$(SETUP_BENCH)
	@$(MAKE) kmod KERNEL=$(KERNEL) $(if $(filter siw,$(PROVIDER)),siw)
	@KERNEL=$(KERNEL) scripts/bench/wall

##@ Keep it tidy
.PHONY: format docs clean distclean
format: ## lay user space out as .clang-format says
	@scripts/lint --format

docs: ## HTML and man pages under build/docs
	@scripts/setup docs
	@scripts/build-docs $(O)

clean: ## remove the build directory
	rm -rf $(O)

distclean: clean ## the cache of kernels as well
	rm -rf $(CACHE)/kernels

##@ Install
.PHONY: install uninstall dkms-install in-tree deb rpm
# The machine's own kernel, unless KERNEL is given.
INSTALL_KERNEL := $(if $(filter command environment,$(firstword $(origin KERNEL))),$(KERNEL),running)

install: ## module, tool, library, header, services, udev rule, man pages (DESTDIR, PREFIX)
	@$(MAKE) kmod tool KERNEL=$(INSTALL_KERNEL)
	@scripts/install install $(O) $(INSTALL_KERNEL)

in-tree: ## lay modules, uapi, selftests and documents into the kernel tree LINUX=dir
	@scripts/in-tree "$(LINUX)"

uninstall: ## remove them again
	@scripts/install uninstall $(O) $(INSTALL_KERNEL)

dkms-install: ## the module alone by DKMS, built again for every new kernel
	@scripts/install dkms $(O) $(INSTALL_KERNEL)

deb: ## Debian packages: tool and services, library, headers, modules by DKMS
	@scripts/setup package
	@scripts/packaging/deb $(O)

rpm: ## RPM packages, to see that the spec file is right
	@scripts/setup package
	@scripts/packaging/rpm $(O)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile
