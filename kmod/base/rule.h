/* SPDX-License-Identifier: GPL-2.0 */
/* Access rules of exports. See rule.c. */
#ifndef KXFER_RULE_H
#define KXFER_RULE_H

#include <linux/kxfer.h>

#define KXFER_MAX_RULES		32

/**
 * struct kxfer_claim - identity of a process that asks for an export
 * @addr: address of the peer
 * @key: name, KXFER_NAME_MAX + 1 bytes, of the key that the peer has proved; or NULL
 * @uid: uid of the process, as the peer claims
 * @gid: gid of the process, as the peer claims
 */
struct kxfer_claim {
	struct kxfer_addr addr;
	const u8 *key;
	u32 uid;
	u32 gid;
};

/**
 * struct kxfer_rules - rules as a user passes them
 * @at: address of the array in user memory, or 0
 * @nr: number of rules
 * @stride: bytes from one rule to the next
 */
struct kxfer_rules {
	u64 at;
	u32 nr;
	u32 stride;
};

int kxfer_rule_check(const struct kxfer_rule *rule, u32 rights);
int kxfer_rule_copy(struct kxfer_rule **rules, const struct kxfer_rules *from, u32 rights);
u32 kxfer_rule_decide(const struct kxfer_rule *rules, u32 nr, struct kxfer_claim *claim);

#endif /* KXFER_RULE_H */
