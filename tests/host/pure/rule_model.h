/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The meaning of rules, bit by bit and without shortcuts: the reference for the cases of
 * rule_test.c and the fuzzer of rules.
 */
#ifndef KXFER_PURE_RULE_MODEL_H
#define KXFER_PURE_RULE_MODEL_H

#include "base/rule.h"

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
			       const struct kxfer_claim *claim)
{
	u32 rights = 0, i;

	/* From the last to the first, because an earlier match overrides the later ones. */
	for (i = nr; i--;) {
		bool matches = true;

		if (rules[i].match & KXFER_RULE_ADDR)
			matches &= model_in_network(&claim->addr, &rules[i].addr,
						    rules[i].prefix_len);
		if (rules[i].match & KXFER_RULE_UID)
			matches &= rules[i].uid == claim->uid;
		if (rules[i].match & KXFER_RULE_GID)
			matches &= rules[i].gid == claim->gid;
		if (rules[i].match & KXFER_RULE_KEY)
			matches &= claim->key &&
				   !strcmp((const char *)rules[i].key, (const char *)claim->key);
		if (matches)
			rights = rules[i].rights;
	}
	return rights;
}

static inline bool model_in_a_name(u8 c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

static inline const char *wrong_key(const struct kxfer_rule *rule)
{
	bool ended = false;
	u32 i;

	if (!(rule->match & KXFER_RULE_KEY) != !rule->key[0])
		return "a key that means nothing, or none";
	for (i = 0; i < sizeof(rule->key); i++) {
		u8 c = rule->key[i];

		ended |= !c;
		if (ended ? c : !model_in_a_name(c))
			return "a key whose name is none";
	}
	return ended ? NULL : "a name without end";
}

/* Whether the uapi header allows an accepted rule. */
static inline const char *wrong_rule(const struct kxfer_rule *rule, u32 rights)
{
	u32 bytes = rule->addr.family == AF_INET ? 4 : 16, i;

	if (rule->match > (KXFER_RULE_ADDR | KXFER_RULE_UID | KXFER_RULE_GID | KXFER_RULE_KEY |
			   KXFER_RULE_NO_UIDS))
		return "an unknown condition";
	if (rule->match & KXFER_RULE_NO_UIDS && rule->match & (KXFER_RULE_UID | KXFER_RULE_GID))
		return "a uid that is asked for and not believed";
	if (wrong_key(rule))
		return wrong_key(rule);
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
