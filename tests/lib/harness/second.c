// SPDX-License-Identifier: MIT
#include "harness/second.h"

#include <string.h>
#include <unistd.h>

#include "harness/baseline.h"
#include "harness/kxfer_test.h"

#define NETDEV		"dummy0"
#define ON_NETDEV	SECOND_ADDRESS "/24 dev " NETDEV

static bool is_siw(void)
{
	return !strcmp(kx_provider(), "siw");
}

bool second_available(void)
{
	return !geteuid() && !access("/sys/class/net/" NETDEV, F_OK);
}

int second_add(void)
{
	if (is_siw())
		baseline_command("nft delete table ip kxfer_test 2>/dev/null");
	return baseline_command("ip addr replace " ON_NETDEV);
}

int second_silence(void)
{
	if (!is_siw())
		return baseline_command("ip addr del " ON_NETDEV);
	return baseline_command("nft 'table ip kxfer_test { chain in { "
				"type filter hook input priority 0; ip saddr " SECOND_ADDRESS
				" drop; ip daddr " SECOND_ADDRESS " drop; }; }'");
}

void second_remove(void)
{
	second_add();
	baseline_command("ip addr del " ON_NETDEV " 2>/dev/null");
}
