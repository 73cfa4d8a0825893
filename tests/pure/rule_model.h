/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What rules mean, bit by bit and without a short way: the reference for the
 * cases of rule_test.c and the fuzzer of rules.
 */
#ifndef KXFER_PURE_RULE_MODEL_H
#define KXFER_PURE_RULE_MODEL_H

#include "rule.h"

static inline u32 bit_of(const struct kxfer_addr *addr, u32 bit)
{
	return addr->addr[bit / 8] >> (7 - bit % 8) & 1;
}

static inline bool model_in_network(const struct kxfer_addr *addr,
				    const struct kxfer_addr *network, u32 prefix_len)
{
	u32 bit;

	if (addr->family != network->family)
		return false;
	for (bit = 0; bit < prefix_len; bit++)
		if (bit >= (addr->family == AF_INET ? 32 : 128) ||
		    bit_of(addr, bit) != bit_of(network, bit))
			return false;
	return true;
}

static inline u32 model_decide(const struct kxfer_rule *rules, u32 nr,
			       const struct kxfer_addr *addr, u32 uid, u32 gid)
{
	u32 rights = 0, i;

	/* From the last to the first: each that matches puts aside those behind it. */
	for (i = nr; i--;) {
		bool matches = true;

		if (rules[i].match & KXFER_RULE_ADDR)
			matches &= model_in_network(addr, &rules[i].addr, rules[i].prefix_len);
		if (rules[i].match & KXFER_RULE_UID)
			matches &= rules[i].uid == uid;
		if (rules[i].match & KXFER_RULE_GID)
			matches &= rules[i].gid == gid;
		if (matches)
			rights = rules[i].rights;
	}
	return rights;
}

/* Whether a rule that was accepted is what the uapi header allows. */
static inline const char *wrong_rule(const struct kxfer_rule *rule, u32 rights)
{
	u32 bytes = rule->addr.family == AF_INET ? 4 : 16, i;

	if (rule->match > (KXFER_RULE_ADDR | KXFER_RULE_UID | KXFER_RULE_GID))
		return "an unknown condition";
	if ((rule->rights | rights) != rights || rule->rights > KXFER_RIGHT_ANY)
		return "more rights than the export has";
	if (rule->__reserved)
		return "a reserved field that is not zero";
	if (!(rule->match & KXFER_RULE_UID) && rule->uid)
		return "a uid that means nothing";
	if (!(rule->match & KXFER_RULE_GID) && rule->gid)
		return "a gid that means nothing";
	if (!(rule->match & KXFER_RULE_ADDR) && rule->addr.family)
		return "a family that means nothing";
	if (!(rule->match & KXFER_RULE_ADDR))
		bytes = 0;
	else if (rule->addr.family != AF_INET && rule->addr.family != AF_INET6)
		return "a family that does not exist";
	if (rule->addr.port || rule->prefix_len > bytes * 8)
		return "a port, or a prefix longer than the address";
	if (bytes < 16 && rule->addr.scope_id)
		return "a scope that means nothing";
	for (i = bytes; i < 16; i++)
		if (rule->addr.addr[i])
			return "bytes behind the address";
	return NULL;
}

#endif /* KXFER_PURE_RULE_MODEL_H */
