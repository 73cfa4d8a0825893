// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness/kxfer_test.h"
#include "harness/slow.h"

int kx_slow_open(struct kx_slow *slow)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	slow->pages = mmap(NULL, 2 * KX_SLOW_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	slow->fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (slow->pages == MAP_FAILED || slow->fd < 0)
		return -errno;
	range.range.start = (uintptr_t)slow->pages + KX_SLOW_PAGE;
	range.range.len = KX_SLOW_PAGE;
	return ioctl(slow->fd, UFFDIO_API, &api) || ioctl(slow->fd, UFFDIO_REGISTER, &range) ?
	       -errno : 0;
}

void kx_slow_close(struct kx_slow *slow)
{
	close(slow->fd);
	munmap(slow->pages, 2 * KX_SLOW_PAGE);
}

bool kx_slow_is_waited_for(const struct kx_slow *slow)
{
	struct pollfd pollfd = { .fd = slow->fd, .events = POLLIN };

	return poll(&pollfd, 1, KX_TIMEOUT_MS) == 1;
}

int kx_slow_supply(const struct kx_slow *slow, const void *page)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)slow->pages + KX_SLOW_PAGE,
		.src = (uintptr_t)page,
		.len = KX_SLOW_PAGE,
	};

	return ioctl(slow->fd, UFFDIO_COPY, &copy) ? -errno : 0;
}

int kx_slow_take_away(const struct kx_slow *slow)
{
	struct uffdio_range range = {
		.start = (uintptr_t)slow->pages + KX_SLOW_PAGE,
		.len = KX_SLOW_PAGE,
	};

	/* munmap() alone does not wake the waiting task. */
	if (munmap(slow->pages + KX_SLOW_PAGE, KX_SLOW_PAGE))
		return -errno;
	return ioctl(slow->fd, UFFDIO_WAKE, &range) ? -errno : 0;
}
