/* SPDX-License-Identifier: MIT */
/*
 * Load: a process that moves bytes to and from an export until it is killed.
 *
 * It has its own session, region, peer and target and a share of the export, and keeps jobs in
 * flight, WRITEs and READs by turns. Its exit status reports errors: LOAD_BROKEN for a failed
 * job, LOAD_CORRUPT for wrong data, LOAD_UNREADY if it could not begin.
 */
#ifndef KXFER_TEST_LOAD_H
#define KXFER_TEST_LOAD_H

#include <stdint.h>
#include <sys/types.h>

#include "rigs/rig.h"

#define LOAD_BROKEN	20
#define LOAD_CORRUPT	21
#define LOAD_UNREADY	22

/**
 * struct load - a running load
 * @pid: process id
 * @pipe: pipe that gets a byte after the first submission, then one each round
 */
struct load {
	pid_t pid;
	int pipe;
};

#define LOAD_SHARES	8

int load_start(struct load *load, const struct rig *server, uint32_t share,
	       uint32_t depth, uint32_t job_bytes);
int load_wait_round(struct load *load, uint32_t ms);
int load_end(struct load *load, int signal);

#endif /* KXFER_TEST_LOAD_H */
