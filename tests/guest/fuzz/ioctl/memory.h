/* SPDX-License-Identifier: MIT */
/*
 * Memory: an arena at a fixed address, divided into blocks of different kinds, for regions and
 * for arguments of calls; and dma-bufs for regions.
 */
#ifndef KXFER_FUZZ_MEMORY_H
#define KXFER_FUZZ_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "random.h"

#define MEMORY_BLOCK	(256u * 1024)

/* Kinds of blocks, in the order of the arena. */
#define MEMORY_KEPT	0	/* never given away for writing: must not change */
#define MEMORY_PLAIN	2
#define MEMORY_READONLY	8
#define MEMORY_SHARED	9	/* of a memfd */
#define MEMORY_FILE	10	/* a shared mapping of an ordinary file: must not be pinned */
#define MEMORY_RACING	11	/* changes while it is in use */
#define MEMORY_NR_RACING	2
#define MEMORY_EDGE	13	/* before the hole */
#define MEMORY_HOLE	14	/* unmapped */
#define MEMORY_BLOCKS	16

#define MEMORY_NR_DMABUFS	3	/* of a memfd, of the system heap, of it for reading */

int memory_make(void);
void *memory_block(uint32_t block);
int memory_dmabuf(uint32_t number);
void memory_fill(struct random *random, void *bytes, size_t length);
void memory_poke(void *to, const void *from, size_t length);
void memory_remap(struct random *random, uint32_t block);
void memory_keep(void);
const char *memory_check_kept(void);

#endif /* KXFER_FUZZ_MEMORY_H */
