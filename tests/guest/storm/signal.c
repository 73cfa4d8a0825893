// SPDX-License-Identifier: GPL-2.0
/*
 * Signals come during every wait: whatever a call was doing, it ends as the contract says, and
 * its work is done either completely or not at all.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "big/storm.h"
#include "harness/baseline.h"
#include "kselftest_harness.h"
#include "peers/responder.h"
#include "rigs/mix.h"

#define LENGTH	(1024u * 1024)

static unsigned int seed;
static volatile sig_atomic_t nr_signals;

static void again(int signal)
{
	struct itimerval timer = { .it_value.tv_usec = 100 + rand_r(&seed) % 5000 };

	nr_signals++;
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void signals_begin(void)
{
	struct sigaction action = { .sa_handler = again };

	sigaction(SIGALRM, &action, NULL);
	again(SIGALRM);
}

static void signals_end(void)
{
	struct itimerval timer = {};

	signal(SIGALRM, SIG_IGN);
	setitimer(ITIMER_REAL, &timer, NULL);
}

FIXTURE(signal)
{
	struct rig rig;
	struct baseline baseline;
	struct mix_done done;
	pid_t responder;
};

FIXTURE_SETUP(signal)
{
	struct rig_options options = { .length = LENGTH };

	self->rig.server = -1;
	if (geteuid())
		SKIP(return, "needs root");
	seed = getpid();
	ASSERT_EQ(0, rig_open(&self->rig, &options));
	ASSERT_EQ(0, rig_move(&self->rig, KXFER_OP_READ, 0, 0, LENGTH));
	close(self->rig.client);
	self->rig.client = -1;
	/* A guest that has run nothing before has no CQ of the pool yet. */
	ASSERT_EQ(0, storm_connect(&self->rig));
	ASSERT_EQ(0, baseline_take(self->rig.server, &self->baseline));
}

FIXTURE_TEARDOWN(signal)
{
	responder_kill(&self->responder);
	rig_close(&self->rig);
}

/* Counts of interrupted calls, and of jobs, which must not get lost. */
struct tally {
	uint32_t eintr_reap;
	uint32_t eintr_event;
	uint32_t eintr_info;
	uint32_t eintr_bench;
	uint32_t cut_submits;
	uint32_t accepted;
	uint32_t reaped;
	uint32_t rounds;
};

static int submit_and_wait(const struct mix *mix, struct tally *tally)
{
	const struct rig *rig = mix->rig;
	struct kxfer_completion done[32];
	struct kxfer_job jobs[32];
	struct kxfer_submit cmd = {
		.size = sizeof(cmd),
		.jobs = (uintptr_t)jobs,
		.nr_jobs = 32,
		.stride = sizeof(*jobs),
		.completions = (uintptr_t)done,
		.nr_completions = 32,
		.wait = 32,
	};
	int ret, i;

	/* Half of the messages are long. */
	mix_draw(mix, jobs, 16);
	for (i = 16; i < 32; i++)
		jobs[i] = rig_job(rig, i % 2 ? KXFER_OP_READ : KXFER_OP_WRITE, 0, 0, LENGTH / 4);
	ret = kx_call(rig->client, KXFER_SUBMIT, &cmd);
	if (ret)
		return ret;
	tally->accepted += cmd.accepted;
	tally->reaped += cmd.reaped;
	mix_count(mix, done, cmd.reaped);
	tally->cut_submits += cmd.reaped < cmd.accepted;
	return 0;
}

static int reap_all(const struct mix *mix, struct tally *tally)
{
	struct kxfer_completion done[64];
	int ret;

	while (tally->reaped < tally->accepted) {
		ret = kx_reap(mix->rig->client, done, 64, 64, RIG_WAIT_MS);
		if (!ret)
			return -ENOMSG;
		if (ret < 0 && ret != -EINTR)
			return ret;
		tally->eintr_reap += ret < 0;
		tally->reaped += ret < 0 ? 0 : ret;
		if (ret > 0 && !mix_count(mix, done, ret))
			return -EPROTO;
	}
	return 0;
}

/* A run completes, or a signal ends it. The responder may still be closing the last connection. */
static int measure(const struct mix *mix, struct tally *tally)
{
	int ret = mix_measure(mix);

	tally->eintr_bench += ret == -EINTR;
	return ret == -EINTR || ret == -ECONNREFUSED ? 0 : ret;
}

/* Waits that only a signal or a timeout ends. */
static int wait_in_vain(struct rig *rig, struct tally *tally)
{
	struct kxfer_content content;
	struct kxfer_event event;
	int ret;

	ret = kx_target_info(rig->client, rig->target, 1000, 20, &content);
	tally->eintr_info += ret == -EINTR;
	if (ret != -EINTR && ret != -ETIMEDOUT)
		return ret ?: -EPROTO;
	ret = kx_event_reap(rig->server, &event, 1, 20);
	tally->eintr_event += ret == -EINTR;
	return ret == -EINTR || ret == -ETIMEDOUT ? 0 : ret ?: -EPROTO;
}

/* Connecting, opening, withdrawing under a holder and closing all wait too. */
static int open_and_withdraw(struct rig *rig)
{
	uint32_t export_id, target;
	int ret;

	ret = kx_export_add(rig->server, rig->there_region, 0, LENGTH, KXFER_RIGHT_ALL,
			    "signal-storm", &export_id);
	if (ret)
		return ret;
	ret = kx_target_open(rig->client, rig->peer, "signal-storm", 0, &target);
	if (ret)
		return ret;
	ret = kx_export_del(rig->server, export_id);
	return ret ?: kx_target_close(rig->client, target);
}

static const char *one_round(struct rig *rig, struct mix_done *done, struct tally *tally)
{
	struct rig client = *rig;
	struct mix mix = { .rig = &client, .done = done, .seed = &seed };
	const char *wrong = NULL;

	client.client = -1;
	memset(&client.there, 0, sizeof(client.there));
	client.there.fd = -1;
	if (rig_open_client(&client) || mix_open(&mix))
		wrong = "a client cannot be opened";
	else if (submit_and_wait(&mix, tally))
		wrong = "SUBMIT failed";
	else if (reap_all(&mix, tally))
		wrong = "completions are missing, or jobs failed";
	else if (measure(&mix, tally))
		wrong = "a run ended as no contract says";
	else if (wait_in_vain(&client, tally))
		wrong = "a wait ended as no contract says";
	else if (open_and_withdraw(&client))
		wrong = "an export cannot be opened and withdrawn";
	client.server = -1;
	rig_close(&client);
	tally->rounds++;
	return wrong;
}

TEST_F_TIMEOUT(signal, during_every_wait, 3600)
{
	uint32_t seconds = storm_amount(4, 60);
	const char *wrong = NULL;
	struct tally tally = {};
	uint64_t end;

	self->done.port = responder_spawn(&self->responder);
	ASSERT_NE(0, self->done.port);
	end = kx_deadline_ns(seconds * 1000);
	signals_begin();
	while (!wrong && kx_now_ns() < end)
		wrong = one_round(&self->rig, &self->done, &tally);
	signals_end();
	TH_LOG("%d signals, %u rounds: REAP %u, EVENT_REAP %u, TARGET_INFO %u, BENCH %u",
	       nr_signals, tally.rounds, tally.eintr_reap, tally.eintr_event, tally.eintr_info,
	       tally.eintr_bench);
	TH_LOG("SUBMIT %u cut", tally.cut_submits);
	TH_LOG("%s", mix_tell(&self->done));
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	EXPECT_EQ(tally.accepted, tally.reaped);
	EXPECT_LT(0, tally.eintr_event);
	EXPECT_LT(0, tally.eintr_info);
	EXPECT_LT(0, tally.eintr_bench);
	responder_kill(&self->responder);
	/*
	 * Interrupted SUBMITs and REAPs are not required here, because on one CPU jobs may end
	 * before a signal; uapi/signal.c tests them.
	 */
	wrong = baseline_wait(self->rig.server, &self->baseline, BASELINE_WAIT_MS);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
}

TEST_HARNESS_MAIN
