// SPDX-License-Identifier: GPL-2.0
/* The module is loaded and has its node, which root may open, and by the udev rule a group too. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "kselftest_harness.h"

TEST(module_is_loaded)
{
	char line[256];
	bool found = false;
	FILE *modules = fopen("/proc/modules", "re");

	ASSERT_NE(NULL, modules);
	while (fgets(line, sizeof(line), modules))
		found |= !strncmp(line, "kxfer ", 6);
	fclose(modules);
	EXPECT_TRUE(found);
}

TEST(node_is_for_root_and_the_group_of_its_udev_rule)
{
	struct stat node;

	ASSERT_EQ(0, stat("/dev/kxfer", &node));
	EXPECT_TRUE(S_ISCHR(node.st_mode));
	EXPECT_EQ(0, node.st_uid);
	EXPECT_EQ(node.st_gid ? 0660 : 0600, node.st_mode & 07777);
}

TEST(node_opens)
{
	int fd = open("/dev/kxfer", O_RDWR | O_CLOEXEC);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, close(fd));
}

TEST_HARNESS_MAIN
