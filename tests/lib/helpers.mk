# SPDX-License-Identifier: MIT
#
# Makes $(OUTPUT)/helpers.a and helpers32.a of tests/lib/*.c.

include lib/flags.mk

SOURCES := $(wildcard lib/*.c)
HEADERS := $(wildcard lib/*.h) $(wildcard $(TOP)/uapi/linux/*.h)
OBJECTS := $(SOURCES:lib/%.c=$(OUTPUT)/%.o)
OBJECTS32 := $(SOURCES:lib/%.c=$(OUTPUT)/%.32.o)

all: $(OUTPUT)/helpers.a $(OUTPUT)/helpers32.a

# An archive without members is fine: there may be no helper yet.
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
