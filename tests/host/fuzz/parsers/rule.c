// SPDX-License-Identifier: GPL-2.0
/* Access rules of a user, compared with the reference of rule_model.h. */
#include "input.h"

#include <base/addr.c>
#include <base/rule.c>
#include <rule_model.h>

static struct kxfer_addr take_addr(struct input *input)
{
	static const u16 families[] = { AF_INET, AF_INET6, 0, AF_UNIX };
	struct kxfer_addr addr = { .family = families[take_below(input, 4)] };
	u32 i, bytes = addr.family == AF_INET ? 4 : 16;

	for (i = 0; i < bytes; i++)
		addr.addr[i] = take(input, 1);
	return addr;
}

static void take_rule(struct input *input, struct kxfer_rule *rule)
{
	u8 shape = take(input, 1);

	*rule = (struct kxfer_rule) {
		.match = take(input, 1),
		.rights = take(input, 1),
		.uid = shape & 1 ? take(input, 4) : 0,
		.gid = shape & 2 ? take(input, 4) : 0,
		.prefix_len = shape & 4 ? take(input, 1) : 0,
		.__reserved = shape >> 7,
	};
	if (shape & 8)
		rule->addr = take_addr(input);
	rule->addr.port = shape & 16 ? take(input, 2) : 0;
	rule->addr.scope_id = shape & 32 ? take(input, 4) : 0;
	if (rule->match & KXFER_RULE_KEY)
		rule->key[take_below(input, 2) * KXFER_NAME_MAX] = take(input, 1);
	if (shape & 64)
		rule->addr.addr[take_below(input, 16)] ^= take(input, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct kxfer_rule rules[KXFER_MAX_RULES], *copy;
	struct kxfer_rules from = { };
	u32 nr = take_below(&input, 8), rights = take_below(&input, 4), i;
	struct sockaddr_storage storage;
	u8 key[KXFER_NAME_MAX + 1] = { 0 };
	struct kxfer_addr peer, back;
	struct kxfer_claim claim;
	int ret;

	for (i = 0; i < nr; i++)
		take_rule(&input, &rules[i]);
	peer = take_addr(&input);
	claim = (struct kxfer_claim) { .addr = peer, .key = key };
	claim.uid = take(&input, 4);
	claim.gid = take(&input, 4);
	key[0] = take(&input, 1);

	if (nr)
		from = (struct kxfer_rules) { (uintptr_t)rules, nr, sizeof(*rules) };
	ret = kxfer_rule_copy(&copy, &from, rights);
	for (i = 0; i < nr; i++)
		if (!ret)
			found(wrong_rule(&rules[i], rights));
		else if (!wrong_rule(&rules[i], rights) && kxfer_rule_check(&rules[i], rights))
			found("a good rule is refused");
	if (!ret && nr && model_decide(rules, nr, &claim) != kxfer_rule_decide(copy, nr, &claim))
		found("other rights than the reference gives");
	if (!ret)
		kvfree(copy);

	if (!kxfer_addr_check(&peer)) {
		kxfer_addr_to_sockaddr(&peer, &storage);
		kxfer_addr_from_sockaddr(&back, &storage);
		if (!kxfer_addr_equal(&peer, &back))
			found("another address comes back");
	}
	return 0;
}
