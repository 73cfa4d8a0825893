# SPDX-License-Identifier: MIT
#
# Included by the Makefile of every collection: every .c file is a test program, every .sh file
# a test script. A program whose name ends in 32 is built as a static 32-bit program. Libraries
# for one program are given as
#   $(OUTPUT)/name: LDLIBS += -lrdmacm

TEST_GEN_PROGS += $(patsubst %.c,%,$(wildcard *.c))
TEST_PROGS += $(wildcard *.sh)

include $(TOP)/tests/lib/flags.mk
LOCAL_HDRS += $(wildcard *.h $(TOP)/tests/lib/*/*.h $(TOP)/uapi/linux/*.h)

# lib.mk builds each program from NAME.c and the prerequisites added here.
include $(KSELFTEST)/lib.mk

PROGS32 := $(filter %32,$(TEST_GEN_PROGS))
$(filter-out %32,$(TEST_GEN_PROGS)): $(OUT)/lib/helpers.a
$(PROGS32): $(OUT)/lib/helpers32.a
$(PROGS32): CFLAGS += -m32
$(PROGS32): LDFLAGS += -static
