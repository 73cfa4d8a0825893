/*
 * SPDX-License-Identifier: MIT
 *
 * The order in memory of the completion ring (kmod/job/ring.c, struct kxfer_ring) as
 * litmus tests, for Spin: tests/host/model/run tries every order of every test. MESSAGE and REUSE
 * are also those of the submission ring (kmod/job/sq.c), where the process writes the slots and
 * tail, and the kernel writes head.
 *
 * Each process is a CPU that performs its accesses in any order that the barriers between them
 * allow. Dependencies do not order accesses, and neither does program order. So the model
 * allows every order of these accesses that the kernel's memory model allows, and more. All
 * CPUs share one memory, as on SMP machines whose stores become visible to all other CPUs at
 * once (x86, arm64, riscv).
 *
 * -DMESSAGE selects the test of that name. -DNO_TAIL_RELEASE leaves the barrier of that name
 * out; then the assertion has to fail, or the barrier is not needed. "after(x)" means that a
 * barrier makes an access wait for x.
 */

#ifdef NO_TAIL_RELEASE		/* kxfer_ring_publish(): smp_store_release() of tail */
#define tail_release_after(x)	true
#else
#define tail_release_after(x)	(x)
#endif

#ifdef NO_TAIL_ACQUIRE		/* the reader's load-acquire of tail */
#define tail_acquire_before(x)	true
#else
#define tail_acquire_before(x)	(x)
#endif

#ifdef NO_HEAD_RELEASE		/* the reader's store-release, or compare-exchange, of head */
#define head_release_after(x)	true
#else
#define head_release_after(x)	(x)
#endif

#ifdef NO_HEAD_ACQUIRE		/* kxfer_ring_look_locked(): smp_load_acquire() of head */
#define head_acquire_before(x)	true
#else
#define head_acquire_before(x)	(x)
#endif

#ifdef NO_KERNEL_BARRIER	/* tell(): smp_mb() */
#define kernel_barrier_after(x)	true
#else
#define kernel_barrier_after(x)	(x)
#endif

#ifdef NO_READER_BARRIER	/* the reader's full barrier before it sleeps */
#define reader_barrier_after(x)	true
#else
#define reader_barrier_after(x)	(x)
#endif

#ifdef NO_COUNT_RELEASE		/* kxfer_complete_places(): smp_store_release() of nr_done, nr_jobs */
#define count_release_after(x)	true
#else
#define count_release_after(x)	(x)
#endif

#ifdef NO_WAITED_BARRIER	/* kxfer_ring_waited(): smp_rmb() */
#define waited_before(x)	true
#else
#define waited_before(x)	(x)
#endif

/* A ring of one slot. A completion is the number that tail has after it. */
byte head, tail, slot;
byte ended;

#define access(done, condition, what) \
	:: atomic { !done && (condition) -> what; done = true }

#if defined(MESSAGE)

/* A reader that sees the new tail sees the completion. */
active proctype kernel()
{
	bool wrote, published;

	do
	access(wrote, true, slot = 1)
	access(published, tail_release_after(wrote), tail = 1)
	:: wrote && published -> break
	od;
	ended++
}

byte seen_tail, seen_slot;

active proctype reader()
{
	bool looked, took;

	do
	access(looked, true, seen_tail = tail)
	access(took, tail_acquire_before(looked), seen_slot = slot)
	:: looked && took -> break
	od;
	ended++
}

active proctype judge()
{
	ended == 2;
	assert(seen_tail == 0 || seen_slot == 1)
}

#elif defined(REUSE)

/* The kernel writes a slot again only after its reader is done with it. */
byte seen_head, seen_slot;

init { slot = 1; tail = 1; run kernel(); run reader(); run judge() }

proctype kernel()
{
	bool looked, wrote;

	do
	access(looked, true, seen_head = head)
	access(wrote, head_acquire_before(looked), slot = 2)
	:: looked && wrote -> break
	od;
	ended++
}

proctype reader()
{
	bool took, stored;

	do
	access(took, true, seen_slot = slot)
	access(stored, head_release_after(took), head = 1)
	:: took && stored -> break
	od;
	ended++
}

proctype judge()
{
	ended == 2;
	assert(seen_head == 0 || seen_slot == 1)
}

#elif defined(SLEEP)

/*
 * A reader has taken completion 1 and finds no other, while completion 2 is published. Either
 * the reader sees the new tail, or the kernel sees that nothing else was unread and signals the
 * eventfd.
 */
byte seen_head, seen_tail;

init { tail = 1; run kernel(); run reader(); run judge() }

proctype kernel()
{
	bool published, looked;

	do
	access(published, true, tail = 2)
	access(looked, kernel_barrier_after(published), seen_head = head)
	:: published && looked -> break
	od;
	ended++
}

proctype reader()
{
	bool stored, looked;

	do
	access(stored, true, head = 1)
	access(looked, reader_barrier_after(stored), seen_tail = tail)
	:: stored && looked -> break
	od;
	ended++
}

#define sleeps	(seen_tail == 1)
#define signals	(2 - seen_head == 1)

proctype judge()
{
	ended == 2;
	assert(!sleeps || signals)
}

#elif defined(WAITED)

/* A call that saw in nr_done that a completion came returns to a process that sees it in tail. */
byte nr_done, seen_done, seen_tail;

active proctype kernel()
{
	bool published, counted;

	do
	access(published, true, tail = 1)
	access(counted, count_release_after(published), nr_done = 1)
	:: published && counted -> break
	od;
	ended++
}

active proctype caller()
{
	bool waited, looked;

	do
	access(waited, true, seen_done = nr_done)
	access(looked, waited_before(waited), seen_tail = tail)
	:: waited && looked -> break
	od;
	ended++
}

active proctype judge()
{
	ended == 2;
	assert(seen_done == 0 || seen_tail == 1)
}

#elif defined(READERS)

/*
 * Two threads take completions from one ring (kxfer_ring_take()), while the kernel publishes
 * one after the other in the same slot. A taken completion is never torn.
 */
init { slot = 1; tail = 1; run kernel(); run reader(); run reader() }

proctype kernel()
{
	bool looked, wrote, published;

	do
	:: atomic { !looked && head == 1 -> looked = true }
	access(wrote, looked, slot = 2)
	access(published, tail_release_after(wrote), tail = 2)
	:: published -> break
	:: !looked && ended == 2 -> break
	od
}

proctype reader()
{
	bool began, looked, took, exchanged, taken;
	byte seen_head, seen_tail, seen_slot;

	do
	access(began, true, seen_head = head)
	access(looked, true, seen_tail = tail)
	access(took, tail_acquire_before(looked), seen_slot = slot)
	:: atomic { !exchanged && began && looked && head_release_after(took) ->
		if
		:: seen_tail - seen_head == 1 && head == seen_head -> head++; taken = true
		:: else
		fi;
		exchanged = true }
	:: began && looked && took && exchanged -> break
	od;
	assert(!taken || seen_slot == seen_head + 1);
	ended++
}

#endif
