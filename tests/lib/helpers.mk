# SPDX-License-Identifier: MIT
#
# Makes $(OUTPUT)/helpers.a and helpers32.a of tests/lib/*/*.c:
#
#   harness  calls of the module, counters, patterns, faults; helpers of shell tests
#   peers    ends of a connection outside the module
#   rigs     a server with a client, and jobs between them
#   big      storms, tenants, flows of calls: built from all these
#
# Peers and rigs use the harness, but not each other.

include lib/flags.mk

SOURCES := $(wildcard lib/*/*.c)
HEADERS := $(wildcard lib/*/*.h) $(wildcard $(TOP)/uapi/linux/*.h)
OBJECTS := $(SOURCES:lib/%.c=$(OUTPUT)/%.o)
OBJECTS32 := $(SOURCES:lib/%.c=$(OUTPUT)/%.32.o)

all: $(OUTPUT)/helpers.a $(OUTPUT)/helpers32.a

# An archive without members is allowed: there may be no helper yet.
$(OUTPUT)/helpers.a: $(OBJECTS)
$(OUTPUT)/helpers32.a: $(OBJECTS32)
$(OUTPUT)/helpers.a $(OUTPUT)/helpers32.a:
	@rm -f $@
	@$(AR) rcs $@ $^

$(OUTPUT)/%.32.o: lib/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -m32 $(CFLAGS) -c $< -o $@

$(OUTPUT)/%.o: lib/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

$(OUTPUT)/helpers.a $(OUTPUT)/helpers32.a: | $(OUTPUT)
$(OUTPUT):
	@mkdir -p $@

.PHONY: all
