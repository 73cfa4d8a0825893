/* SPDX-License-Identifier: MIT */
/*
 * The part of the kernel's <kunit/test.h> that tests/host/pure uses, for user space: the same
 * source files are KUnit suites in the kernel and gtest tests here (tests/host/pure/gtest.cpp).
 */
#ifndef KXFER_PURE_KUNIT_TEST_H
#define KXFER_PURE_KUNIT_TEST_H

#include <setjmp.h>

#include "../for_user.h"

/**
 * struct kunit - one run of one case
 * @leave: jump target of a failed assertion
 * @memory: memory from kunit_kmalloc_array(), freed after the case
 * @fail: called for each failure
 */
struct kunit {
	jmp_buf leave;
	struct kunit_memory *memory;
	void (*fail)(const char *file, int line, const char *text);
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char name[256];
	struct kunit_case *test_cases;
};

#ifdef __cplusplus
extern "C" {
#endif
/* All linked suites; the linker collects them. */
extern struct kunit_suite *__start_kunit_suites[], *__stop_kunit_suites[];

void kunit_run(struct kunit_case *test_case,
	       void (*fail)(const char *file, int line, const char *text));
void kunit_fail(struct kunit *test, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void *kunit_kmalloc_array(struct kunit *test, size_t nr, size_t size, int flags);
#ifdef __cplusplus
}
#endif

#define GFP_KERNEL		0
#define KUNIT_CASE(function)	{ .run_case = function, .name = #function }
#define kunit_test_suite(suite) \
	static struct kunit_suite *suite##_entry \
	__attribute__((used, section("kunit_suites"))) = &(suite)

#define KUNIT_FAIL(test, ...)	kunit_fail(test, __FILE__, __LINE__, __VA_ARGS__)

#define KUNIT_COMPARE(test, left, op, right, otherwise) do { \
	const typeof(left) __left = (left); \
	const typeof(right) __right = (right); \
	if (!(__left op __right)) { \
		kunit_fail(test, __FILE__, __LINE__, "%s " #op " %s: %lld and %lld", \
			   #left, #right, (long long)__left, (long long)__right); \
		otherwise; \
	} \
} while (0)

#define KUNIT_EXPECT_EQ(test, left, right)	KUNIT_COMPARE(test, left, ==, right, )
#define KUNIT_EXPECT_NE(test, left, right)	KUNIT_COMPARE(test, left, !=, right, )
#define KUNIT_EXPECT_LE(test, left, right)	KUNIT_COMPARE(test, left, <=, right, )
#define KUNIT_EXPECT_GE(test, left, right)	KUNIT_COMPARE(test, left, >=, right, )
#define KUNIT_ASSERT_EQ(test, left, right) \
	KUNIT_COMPARE(test, left, ==, right, longjmp((test)->leave, 1))
#define KUNIT_ASSERT_TRUE(test, condition) \
	KUNIT_COMPARE(test, (bool)(condition), ==, (bool)true, longjmp((test)->leave, 1))

#define KUNIT_EXPECT_TRUE(test, condition) \
	KUNIT_COMPARE(test, (bool)(condition), ==, (bool)true, )
#define KUNIT_EXPECT_FALSE(test, condition) \
	KUNIT_COMPARE(test, (bool)(condition), ==, (bool)false, )

#define KUNIT_ASSERT_NOT_NULL(test, pointer) do { \
	if (!(pointer)) { \
		kunit_fail(test, __FILE__, __LINE__, "%s is NULL", #pointer); \
		longjmp((test)->leave, 1); \
	} \
} while (0)

#endif /* KXFER_PURE_KUNIT_TEST_H */
