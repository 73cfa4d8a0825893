// SPDX-License-Identifier: GPL-2.0
/*
 * Rules: which processes may open an export, and with which rights.
 *
 * A rule names conditions that must all hold (network of the peer, uid, gid, key that was
 * proved) and the rights that it grants, perhaps none. Rules are tried in the order in
 * which the owner of the export gave them. The first rule that matches decides; if none
 * matches, no right is granted. uid and gid are what the peer's kernel claims; a rule may
 * say that this claim is not believed.
 *
 * Context: copying may sleep; deciding may not, and changes nothing but the claim. User
 * space compiles this file too, to test it.
 */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "base/addr.h"
#include "base/name.h"
#include "base/rule.h"

#define RULE_STRIDE_MAX		256	/* bytes; leaves room for longer rules */

/*
 * A member must be 0 if its condition is not named; NO_UIDS excludes conditions on uid and
 * gid.
 */
static bool conditions_fit(const struct kxfer_rule *rule)
{
	if ((!(rule->match & KXFER_RULE_UID) && rule->uid) ||
	    (!(rule->match & KXFER_RULE_GID) && rule->gid))
		return false;
	if (rule->match & KXFER_RULE_NO_UIDS && rule->match & (KXFER_RULE_UID | KXFER_RULE_GID))
		return false;
	return rule->match & KXFER_RULE_KEY ? kxfer_name_valid(rule->key) :
	       !memchr_inv(rule->key, 0, sizeof(rule->key));
}

/**
 * kxfer_rule_check() - whether a rule makes sense
 * @rule: rule as the user passed it
 * @rights: KXFER_RIGHT_* of the export
 *
 * Return: 0, -EINVAL or -EOPNOTSUPP.
 */
int kxfer_rule_check(const struct kxfer_rule *rule, u32 rights)
{
	u32 all = KXFER_RULE_ADDR | KXFER_RULE_UID | KXFER_RULE_GID | KXFER_RULE_KEY |
		  KXFER_RULE_NO_UIDS;

	if (rule->match & ~all || rule->rights & ~KXFER_RIGHT_ANY)
		return -EOPNOTSUPP;
	if (rule->__reserved || rule->rights & ~rights)
		return -EINVAL;
	if (!conditions_fit(rule))
		return -EINVAL;
	if (!(rule->match & KXFER_RULE_ADDR))
		return rule->prefix_len || memchr_inv(&rule->addr, 0, sizeof(rule->addr)) ?
		       -EINVAL : 0;
	if (rule->addr.port || kxfer_addr_check(&rule->addr))
		return -EINVAL;
	return rule->prefix_len > (rule->addr.family == AF_INET ? 32 : 128) ? -EINVAL : 0;
}

/**
 * kxfer_rule_copy() - copy and check the rules of an export
 * @rules: out: an array for kvfree(), or NULL without rules
 * @from: location and layout of the rules in user memory
 * @rights: KXFER_RIGHT_* of the export
 *
 * Return: 0, -EDQUOT for too many, -EFAULT, -ENOMEM, -E2BIG for a member that is not
 * known here, or -EINVAL and -EOPNOTSUPP for a rule or a stride that makes no sense.
 */
int kxfer_rule_copy(struct kxfer_rule **rules, const struct kxfer_rules *from, u32 rights)
{
	struct kxfer_rule *copy;
	int ret = 0;
	u32 i;

	*rules = NULL;
	if (from->nr > KXFER_MAX_RULES)
		return -EDQUOT;
	if (!from->nr)
		return from->at || from->stride ? -EINVAL : 0;
	if (from->stride < KXFER_RULE_SIZE_MIN || from->stride > RULE_STRIDE_MAX ||
	    from->stride % 8)
		return -EINVAL;
	copy = kvmalloc_array(from->nr, sizeof(*copy), GFP_KERNEL_ACCOUNT);
	if (!copy)
		return -ENOMEM;
	for (i = 0; !ret && i < from->nr; i++)
		ret = copy_struct_from_user(&copy[i], sizeof(*copy),
					    u64_to_user_ptr(from->at) + i * from->stride,
					    from->stride) ?:
		      kxfer_rule_check(&copy[i], rights);
	if (ret)
		kvfree(copy);
	else
		*rules = copy;
	return ret;
}

static bool rule_matches(const struct kxfer_rule *rule, const struct kxfer_claim *claim)
{
	if (rule->match & KXFER_RULE_ADDR &&
	    !kxfer_addr_in_network(&claim->addr, &rule->addr, rule->prefix_len))
		return false;
	if (rule->match & KXFER_RULE_UID && rule->uid != claim->uid)
		return false;
	if (rule->match & KXFER_RULE_GID && rule->gid != claim->gid)
		return false;
	return !(rule->match & KXFER_RULE_KEY) ||
	       (claim->key && !memcmp(rule->key, claim->key, sizeof(rule->key)));
}

/**
 * kxfer_rule_decide() - the rights that the rules grant to a peer's process
 * @rules: rules in order
 * @nr: entries of @rules
 * @claim: the requester; uid and gid become KXFER_UID_UNKNOWN if they are not believed
 *
 * Return: KXFER_RIGHT_*; 0: none.
 */
u32 kxfer_rule_decide(const struct kxfer_rule *rules, u32 nr, struct kxfer_claim *claim)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!rule_matches(&rules[i], claim))
			continue;
		if (rules[i].match & KXFER_RULE_NO_UIDS) {
			claim->uid = KXFER_UID_UNKNOWN;
			claim->gid = KXFER_UID_UNKNOWN;
		}
		return rules[i].rights;
	}
	return 0;
}
