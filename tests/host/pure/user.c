// SPDX-License-Identifier: MIT
/* The user-space side of include/kunit/test.h. */
#include <stdarg.h>
#include <stdio.h>

#include <kunit/test.h>

struct kunit_memory {
	struct kunit_memory *next;
	max_align_t bytes[];
};

void *kunit_kmalloc_array(struct kunit *test, size_t nr, size_t size, int flags)
{
	struct kunit_memory *memory = malloc(sizeof(*memory) + nr * size);

	(void)flags;
	if (!memory)
		return NULL;
	memory->next = test->memory;
	test->memory = memory;
	return memory->bytes;
}

void kunit_fail(struct kunit *test, const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	test->fail(file, line, text);
}

void kunit_run(struct kunit_case *test_case,
	       void (*fail)(const char *file, int line, const char *text))
{
	struct kunit test = { .fail = fail };
	struct kunit_memory *next;

	if (!setjmp(test.leave))
		test_case->run_case(&test);
	for (; test.memory; test.memory = next) {
		next = test.memory->next;
		free(test.memory);
	}
}
