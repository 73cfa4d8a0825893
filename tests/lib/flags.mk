# SPDX-License-Identifier: MIT
#
# How C tests and their helpers are compiled. A helper's header is included with its folder
# ("rigs/rig.h"), a header of the module by its path in the tree ("kmod/base/wire.h").

# -isystem, because warnings in the framework's headers are the kernel's business.
CFLAGS += -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Wno-psabi \
	  -D_GNU_SOURCE= -I$(TOP) -I$(TOP)/uapi -I$(TOP)/tests/lib \
	  -isystem $(KSELFTEST)
LDLIBS += -pthread
