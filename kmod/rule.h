/* SPDX-License-Identifier: GPL-2.0 */
/* Access rules of exports. See rule.c. */
#ifndef KXFER_RULE_H
#define KXFER_RULE_H

#include <linux/kxfer.h>

#define KXFER_MAX_RULES		32

int kxfer_rule_check(const struct kxfer_rule *rule, u32 rights);
int kxfer_rule_copy(struct kxfer_rule **rules, u64 from, u32 nr, u32 rights);
u32 kxfer_rule_decide(const struct kxfer_rule *rules, u32 nr,
		      const struct kxfer_addr *addr, u32 uid, u32 gid);

#endif /* KXFER_RULE_H */
