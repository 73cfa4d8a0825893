// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs: memory that another driver owns, an accelerator's for instance, and how a device
 * reaches it. kxfer is an importer (Documentation/driver-api/dma-buf.rst of the kernel).
 *
 * Two kinds of devices. One that works on DMA addresses gets an attachment of its own: pinned,
 * so that the exporter moves the memory no more, and mapped. The addresses may be those of
 * another device's BAR. A device with virtual DMA (rxe, siw) works on CPU addresses, and looks
 * up their pages by virt_to_page(). For it the exporter maps the buffer for the CPU, and the
 * pages behind that mapping are used by their addresses in the direct map. An exporter that
 * cannot, because it has no struct page, is refused.
 *
 * The CPU looks at no byte. The entries of an importer's scatter list have no usable pages, so
 * only sg_dma_address() and sg_dma_len() are read.
 *
 * Pinned memory does not move: until 7.0 the framework wants a move_notify hook all the same,
 * and it is not called. From 7.1 on the hook tells an exporter that its importers give access
 * up when told (dma_buf_attach_revocable()). kxfer does not, has no hook, and an exporter that
 * insists refuses the pin.
 *
 * What is waited for: the move of the memory to where it is pinned, at most MOVE_TIMEOUT. Work
 * under way on the buffer is not: that is its owner's to order, and a fence that a process has
 * put there (DMA_BUF_IOCTL_IMPORT_SYNC_FILE) must not stop a handler of a link. For the same
 * reason dma_buf_begin_cpu_access(), which waits for such fences without a bound, is not called.
 * The reservation lock is the exporter's; it is held for the calls that need it.
 *
 * Context: process; may sleep. kxfer_dmabuf_extents() too.
 */
#include "base/log.h"

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>

#include "base/compat.h"
#include "base/plan.h"
#include "node/dmabuf.h"

/* A handler of a link may wait here, and other requests of the peer with it. */
#define MOVE_TIMEOUT	(2 * HZ)

static const struct dma_buf_attach_ops importer_ops = {
	.allow_peer2peer = true,
	KXFER_DMA_BUF_PINNED
};

/**
 * kxfer_dmabuf_get() - take a reference on the dma-buf of a file descriptor
 * @fd: descriptor of the calling process
 * @offset: first byte within the buffer
 * @length: bytes
 * @writable: devices may write the buffer; then the file must be open for writing
 *
 * Return: the buffer, or ERR_PTR: -EBADF if there is no such descriptor, -EINVAL if it is no
 * dma-buf or @length is 0, -EOVERFLOW if the end wraps, -ERANGE beyond the end, -EACCES.
 */
struct dma_buf *kxfer_dmabuf_get(int fd, u64 offset, u64 length, bool writable)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	int ret = 0;
	u64 end;

	if (IS_ERR(dmabuf))
		return dmabuf;
	if (!length)
		ret = -EINVAL;
	else if (check_add_overflow(offset, length, &end))
		ret = -EOVERFLOW;
	else if (end > dmabuf->size)
		ret = -ERANGE;
	else if (writable && !(dmabuf->file->f_mode & FMODE_WRITE))
		ret = -EACCES;
	if (!ret)
		return dmabuf;
	dma_buf_put(dmabuf);
	return ERR_PTR(ret);
}

/** kxfer_dmabuf_put() - drop the reference; no attachment is left */
void kxfer_dmabuf_put(struct dma_buf *dmabuf)
{
	dma_buf_put(dmabuf);
}

/* Return: 0, -ETIMEDOUT, or -EINTR if the process has a signal, which a worker has not. */
static int wait_for_move(struct dma_buf *dmabuf)
{
	long ret = dma_resv_wait_timeout(dmabuf->resv, DMA_RESV_USAGE_KERNEL, true, MOVE_TIMEOUT);

	if (ret > 0)
		return 0;
	return ret ? -EINTR : -ETIMEDOUT;
}

/* Called with the reservation lock held. */
static int pin_and_map(struct kxfer_attachment *attachment)
{
	int ret = dma_buf_pin(attachment->importer);

	if (ret)
		return ret;
	attachment->table = dma_buf_map_attachment(attachment->importer, attachment->direction);
	if (!IS_ERR(attachment->table))
		return 0;
	dma_buf_unpin(attachment->importer);
	return PTR_ERR(attachment->table);
}

static void detach_importer(struct kxfer_attachment *attachment)
{
	struct dma_buf *dmabuf = attachment->dmabuf;

	dma_resv_lock(dmabuf->resv, NULL);
	dma_buf_unmap_attachment(attachment->importer, attachment->table, attachment->direction);
	dma_buf_unpin(attachment->importer);
	dma_resv_unlock(dmabuf->resv);
	dma_buf_detach(dmabuf, attachment->importer);
}

static int attach_importer(struct kxfer_attachment *attachment, struct device *device)
{
	struct dma_buf *dmabuf = attachment->dmabuf;
	struct dma_buf_attachment *importer;
	int ret;

	importer = dma_buf_dynamic_attach(dmabuf, device, &importer_ops, NULL);
	if (IS_ERR(importer))
		return PTR_ERR(importer);
	attachment->importer = importer;
	dma_resv_lock(dmabuf->resv, NULL);
	ret = pin_and_map(attachment);
	dma_resv_unlock(dmabuf->resv);
	if (ret) {
		dma_buf_detach(dmabuf, importer);
		return ret;
	}
	ret = wait_for_move(dmabuf);
	if (ret)
		detach_importer(attachment);
	return ret;
}

/* Page @i of a buffer that is mapped for the CPU, or NULL. */
static struct page *page_of(const struct kxfer_attachment *attachment, unsigned long i)
{
	void *addr = attachment->map.vaddr + i * PAGE_SIZE;
	struct page *page = NULL;

	if (is_vmalloc_addr(addr))
		page = vmalloc_to_page(addr);
	else if (virt_addr_valid(addr))
		page = virt_to_page(addr);
	return page && page_address(page) ? page : NULL;
}

static bool has_pages(const struct kxfer_attachment *attachment)
{
	unsigned long i, nr = attachment->dmabuf->size >> PAGE_SHIFT;

	if (attachment->map.is_iomem || offset_in_page(attachment->map.vaddr))
		return false;
	for (i = 0; i < nr; i++) {
		if (!page_of(attachment, i))
			return false;
		cond_resched();
	}
	return true;
}

static int attach_cpu(struct kxfer_attachment *attachment)
{
	struct dma_buf *dmabuf = attachment->dmabuf;
	int ret;

	ret = kxfer_dma_buf_vmap(dmabuf, &attachment->map);
	if (ret)
		return ret;
	ret = has_pages(attachment) ? wait_for_move(dmabuf) : -EOPNOTSUPP;
	if (ret)
		kxfer_dma_buf_vunmap(dmabuf, &attachment->map);
	return ret;
}

/* Exporters say in many ways that they cannot. */
static int error_of(int ret)
{
	switch (ret) {
	case 0:
	case -ENOMEM:
	case -ETIMEDOUT:
		return ret;
	case -EINTR:
	case -ERESTARTSYS:
		return -EINTR;
	default:
		return -EOPNOTSUPP;
	}
}

/**
 * kxfer_dmabuf_attach() - make a dma-buf reachable by a device
 * @attachment: @dmabuf and @direction are set, the rest is 0
 * @ibdev: device that stays until kxfer_dmabuf_detach()
 *
 * Return: 0; -EOPNOTSUPP if the exporter has no memory that this device could reach, -ENOMEM,
 * -ETIMEDOUT if a move of its memory does not end, -EINTR.
 */
int kxfer_dmabuf_attach(struct kxfer_attachment *attachment, struct ib_device *ibdev)
{
	return error_of(ib_uses_virt_dma(ibdev) ? attach_cpu(attachment) :
						  attach_importer(attachment, ibdev->dma_device));
}

/** kxfer_dmabuf_detach() - end that; the device works on the buffer no more */
void kxfer_dmabuf_detach(struct kxfer_attachment *attachment)
{
	if (attachment->importer)
		detach_importer(attachment);
	else
		kxfer_dma_buf_vunmap(attachment->dmabuf, &attachment->map);
}

/* Position in a table of extents that is being filled, or counted. */
struct filler {
	struct kxfer_extent *extents;	/* NULL: count only */
	u32 nr;
	u64 skip;			/* bytes before the range */
	u64 left;			/* bytes of the range still to come */
	u64 start;			/* bytes of the range that are there */
};

/* Add bytes that are contiguous for the device; no extent gets more than 2 GiB. */
static void add_bytes(struct filler *filler, u64 addr, u64 length)
{
	u64 skip = min(filler->skip, length), here;

	filler->skip -= skip;
	addr += skip;
	length = min(length - skip, filler->left);
	for (; length; length -= here, addr += here) {
		here = min_t(u64, length, SZ_2G);
		if (filler->extents)
			filler->extents[filler->nr] = (struct kxfer_extent) {
				.start = filler->start,
				.addr = addr,
				.length = here,
			};
		filler->nr++;
		filler->start += here;
		filler->left -= here;
	}
}

static void add_runs(struct filler *filler, const struct kxfer_attachment *attachment)
{
	unsigned long i, run, nr = attachment->dmabuf->size >> PAGE_SHIFT;
	struct page *page;

	for (i = 0; i < nr && filler->left; i += run) {
		page = page_of(attachment, i);
		for (run = 1; i + run < nr && page_of(attachment, i + run) == page + run; run++)
			cond_resched();
		add_bytes(filler, (uintptr_t)page_address(page), run * PAGE_SIZE);
		cond_resched();
	}
}

/**
 * kxfer_dmabuf_extents() - describe a range of an attached buffer
 * @attachment: the attachment
 * @offset: first byte within the buffer
 * @length: bytes; the range is inside the buffer
 * @extents: out: the range in pieces that are contiguous for the device; or NULL
 *
 * Return: number of pieces; 0 if the exporter has given fewer bytes than the buffer has, or
 * pieces of parts of pages.
 */
u32 kxfer_dmabuf_extents(const struct kxfer_attachment *attachment, u64 offset, u64 length,
			 struct kxfer_extent *extents)
{
	struct filler filler = { .extents = extents, .skip = offset, .left = length };
	struct scatterlist *sg;
	int i;

	if (!attachment->importer) {
		add_runs(&filler, attachment);
		return filler.nr;
	}
	for_each_sgtable_dma_sg(attachment->table, sg, i) {
		if ((sg_dma_address(sg) | sg_dma_len(sg)) % KXFER_PLAN_PAGE)
			return 0;
		add_bytes(&filler, sg_dma_address(sg), sg_dma_len(sg));
	}
	return filler.left ? 0 : filler.nr;
}

KXFER_IMPORT_DMA_BUF;
