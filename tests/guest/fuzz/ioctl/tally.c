// SPDX-License-Identifier: MIT
/* Tally: see tally.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "model.h"
#include "tally.h"

struct tally *tally;

int tally_make(void)
{
	void *memory = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	tally = memory;
	return 0;
}

/* The errno contract of the uapi header; EBADF means a closed session. */
static bool in_contract(int error)
{
	static const int known[] = {
		0, ENOTTY, E2BIG, EFAULT, EINVAL, EOPNOTSUPP, EOVERFLOW, ERANGE, ENOENT, EBUSY,
		EEXIST, EADDRINUSE, EADDRNOTAVAIL, EPERM, EACCES, ENOMEM, EDQUOT, EMFILE,
		EAGAIN, EINTR, ETIMEDOUT, EHOSTUNREACH, ECONNREFUSED, ECONNRESET, EKEYREVOKED,
		EPROTONOSUPPORT, EPROTO, EMSGSIZE, ENODEV, EBADF,
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i] == error)
			return true;
	return false;
}

/** tally_call() - count the end of an op's call, with an errno or 0 */
void tally_call(const struct op *op, int error)
{
	tally->calls[op->kind]++;
	if (!error)
		tally->good[op->kind]++;
	else if (error < TALLY_ERRNO_MAX)
		tally->errors[op->kind][error]++;
	if (!in_contract(error))
		model_find("%s failed with %s (%d), which is not in the contract",
			   op_kind_name(op->kind), strerror(error), error);
}

static uint64_t sum(const _Atomic uint64_t *counts)
{
	uint64_t all = 0;
	uint32_t i;

	for (i = 0; i < OP_NR_CALLS; i++)
		all += counts[i];
	return all;
}

uint64_t tally_calls(void)
{
	return sum(tally->calls);
}

uint64_t tally_good(void)
{
	return sum(tally->good);
}

/** tally_print() - print for each call: how many, how many succeeded, the errors */
void tally_print(void)
{
	uint32_t kind, error;

	for (kind = 0; kind < OP_NR_CALLS; kind++) {
		printf("# %-12s %9llu calls, %9llu well", op_kind_name(kind),
		       (unsigned long long)tally->calls[kind],
		       (unsigned long long)tally->good[kind]);
		for (error = 1; error < TALLY_ERRNO_MAX; error++)
			if (tally->errors[kind][error])
				printf(" %s %llu", strerrorname_np(error),
				       (unsigned long long)tally->errors[kind][error]);
		printf("\n");
	}
}
