# SPDX-License-Identifier: MIT
#
# How C tests and their helpers are compiled.

# The headers of the framework are the kernel's business, hence -isystem.
CFLAGS += -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter \
	  -D_GNU_SOURCE= -I$(TOP)/uapi -I$(TOP)/tests/lib -isystem $(KSELFTEST)
LDLIBS += -pthread
