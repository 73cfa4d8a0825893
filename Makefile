# SPDX-License-Identifier: MIT
#
# The front door: every build, test and install starts here (`make help`).
# Recipes are short; the work stands in scripts/, tests/ and userspace/.
# Everything is built under $(O); nothing is written among the sources.

KERNEL  ?= 6.1
O       ?= $(or $(KXFER_BUILD),build)
JOBS    ?= $(shell nproc)
VERSION := $(shell cat VERSION)

# An absolute path, so that recipes may change the directory.
override O := $(abspath $(O))
export KXFER_BUILD := $(O)

SHELL := /bin/bash
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

.PHONY: all
all: kmod userspace ## the module and user space (needs: scripts/setup demo)

.PHONY: kmod
kmod: ## kxfer.ko for KERNEL (6.1, 6.12 or running)
	@scripts/build-kmod $(KERNEL) $(O) kxfer -j$(JOBS)

.PHONY: siw
siw: ## siw.ko for KERNEL, which Debian's kernels leave out
	@scripts/build-kmod $(KERNEL) $(O) siw -s -j$(JOBS)

.PHONY: userspace
userspace: ## library and tool
	@scripts/build-userspace $(O)

.PHONY: vm
vm: ## a shell in a virtual machine with kxfer on soft RoCE
	@scripts/setup demo
	@$(MAKE) kmod userspace
	@tests/vm/run --shell --kernel $(KERNEL)

.PHONY: clean
clean: ## remove the build directory
	rm -rf $(O)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' Makefile
