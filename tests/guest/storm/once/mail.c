// SPDX-License-Identifier: GPL-2.0
/*
 * Messages that a worker sends to itself, over the peer; see worker.h. The mailbox belongs to a
 * second session, which no break ends. RECVs get messages in the order of their submission, and
 * complete in any order. But if a link ends while a long message is READ into a RECV, that RECV
 * gets another message, later than the RECVs after it. One message in LONG_ONE_IN is long: its
 * SEND ends when it has been received, so a worker takes messages while it waits for SENDs.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker.h"

#define CAPACITY	16		/* messages without a waiting RECV */
#define HEAD		sizeof(struct kxfer_message)
#define LONG_ONE_IN	16
#define CANCELLED	UINT64_MAX	/* stored instead of the bytes that have arrived */

/* flags of the number of a SEND */
#define STORED		1u		/* the SEND succeeded */
#define FULL		2u		/* the SEND ended with EAGAIN */
#define RECEIVED	4u

uint32_t mail_length(uint32_t number)
{
	uint32_t hash = number * 2654435761u >> 4;

	if (hash % LONG_ONE_IN)
		return 1 + hash % KXFER_MESSAGE_MAX;
	return KXFER_MESSAGE_MAX + 1 + hash / LONG_ONE_IN % (MAIL_MAX - KXFER_MESSAGE_MAX);
}

int mail_open(struct worker *worker)
{
	struct mail *mail = &worker->mail;
	int ret;

	mail->ends = mmap(NULL, NUMBERS, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mail->bytes = kx_alloc(MAIL_PLACES * MAIL_PLACE);
	if (mail->ends == MAP_FAILED || !mail->bytes)
		return -ENOMEM;
	snprintf(mail->name, sizeof(mail->name), "once-%d", (int)getpid());
	mail->fd = kx_open();
	if (mail->fd < 0)
		return mail->fd;
	ret = kx_region_add(mail->fd, mail->bytes, MAIL_PLACES * MAIL_PLACE,
			    KXFER_REGION_F_WRITE, &mail->region);
	return ret ?: kx_mailbox_add(mail->fd, mail->name, CAPACITY, MAIL_MAX,
				     &mail->mailbox);
}

static void submit_recvs(struct worker *worker)
{
	struct mail *mail = &worker->mail;
	struct kxfer_job jobs[MAIL_PLACES];
	uint32_t nr = 0, n;
	int ret;

	for (n = mail->posted; n - mail->taken < MAIL_PLACES; n++)
		jobs[nr++] = (struct kxfer_job) {
			.op = KXFER_OP_RECV,
			.region = mail->region,
			.target = mail->mailbox,
			.region_offset = n % MAIL_PLACES * MAIL_PLACE,
			.length = MAIL_PLACE,
			.user_data = n,
		};
	if (!nr)
		return;
	ret = kx_submit(mail->fd, jobs, nr);
	if (ret != (int)nr)
		worker_fault(worker->shared, "worker %u: SUBMIT took %d of %u RECVs",
			     worker->id, ret, nr);
	mail->posted = n;
	worker->count->accepted[KXFER_OP_RECV] += nr;
}

/* Return: what is wrong with a message, or NULL. */
static const char *look_at(struct worker *worker, const struct kxfer_message *message,
			   uint64_t bytes)
{
	struct mail *mail = &worker->mail;
	uint32_t number = message->immediate;

	if (message->flags != KXFER_MESSAGE_F_IMM || number >= worker->next)
		return "it was never sent";
	if (mail->ends[number] & RECEIVED)
		return "it came before";
	if (mail->ends[number] & FULL || worker->states[number] == REFUSED)
		return "its SEND was refused";
	if (number < mail->least && message->time_ns > mail->least_ns)
		return "a later one came before";
	if (message->bytes != mail_length(number) || bytes != HEAD + message->bytes)
		return "it has another length";
	return bytes_of_message(worker, number, (const uint8_t *)(message + 1)) ? NULL :
	       "its bytes are wrong";
}

static void take_message(struct worker *worker)
{
	struct mail *mail = &worker->mail;
	uint32_t place = mail->taken++ % MAIL_PLACES;
	const struct kxfer_message *message = (void *)(mail->bytes + place * MAIL_PLACE);
	const char *wrong;

	if (mail->arrived[place] == CANCELLED) {
		mail->arrived[place] = 0;
		mail->nr_cancelled++;
		return;
	}
	wrong = look_at(worker, message, mail->arrived[place]);
	if (wrong) {
		worker_fault(worker->shared,
			     "worker %u: message %u of %llu bytes: %s; least %u, next %u",
			     worker->id, message->immediate, LLU(mail->arrived[place]), wrong,
			     mail->least, worker->next);
		return;
	}
	mail->arrived[place] = 0;
	mail->ends[message->immediate] |= RECEIVED;
	if (message->immediate >= mail->least) {
		mail->least = message->immediate + 1;
		mail->least_ns = message->time_ns;
	}
	worker->count->messages++;
	worker->count->long_messages += message->bytes > KXFER_MESSAGE_MAX;
}

/* @other: another allowed status. */
static void end_recv(struct worker *worker, const struct kxfer_completion *done, int other)
{
	struct mail *mail = &worker->mail;
	uint32_t at = done->user_data;

	if (done->status && done->status == other)
		mail->arrived[at % MAIL_PLACES] = CANCELLED;
	else if (done->status || done->bytes < HEAD || mail->arrived[at % MAIL_PLACES] ||
		 at - mail->taken >= mail->posted - mail->taken)
		worker_fault(worker->shared,
			     "worker %u: RECV %u ended with %d and %llu bytes; taken %u, posted %u",
			     worker->id, at, done->status, LLU(done->bytes), mail->taken,
			     mail->posted);
	else
		mail->arrived[at % MAIL_PLACES] = done->bytes;
}

/* Return: number of completions of RECVs. */
static uint32_t reap_recvs(struct worker *worker, int other)
{
	struct mail *mail = &worker->mail;
	struct kxfer_completion done[MAIL_PLACES];
	int n = kx_reap(mail->fd, done, MAIL_PLACES, 0, 0), i;

	for (i = 0; i < n && !worker->shared->nr_faults; i++)
		end_recv(worker, &done[i], other);
	while (mail->arrived[mail->taken % MAIL_PLACES] && !worker->shared->nr_faults)
		take_message(worker);
	return n < 0 ? 0 : n;
}

void mail_take(struct worker *worker)
{
	submit_recvs(worker);
	reap_recvs(worker, 0);
}

void mail_sent(struct worker *worker, uint32_t number, int status)
{
	uint8_t *end = &worker->mail.ends[number];

	if (!status)
		*end |= STORED;
	if (status != -EAGAIN)
		return;
	*end |= FULL;
	worker->count->full++;
	if (*end & RECEIVED)
		worker_fault(worker->shared, "worker %u: message %u was refused and came",
			     worker->id, number);
}

/* Takes the messages that are left, then cancels all waiting RECVs. */
void mail_end(struct worker *worker)
{
	struct mail *mail = &worker->mail;
	uint32_t number;

	do
		submit_recvs(worker);
	while (reap_recvs(worker, 0) && !worker->shared->nr_faults);
	kx_cancel(mail->fd, 0, KXFER_CANCEL_F_ALL);
	if (!kx_wait_until((reap_recvs(worker, -ECANCELED), worker->shared->nr_faults) ||
			   mail->taken == mail->posted, STUCK_MS))
		worker_fault(worker->shared,
			     "worker %u: of %u RECVs %u ended in turn, of these %u cancelled",
			     worker->id, mail->posted, mail->taken, mail->nr_cancelled);
	for (number = 0; number < worker->next; number++)
		if ((mail->ends[number] & (STORED | RECEIVED)) == STORED)
			worker_fault(worker->shared,
				     "worker %u: message %u was stored and never came",
				     worker->id, number);
	close(mail->fd);
}
