// SPDX-License-Identifier: GPL-2.0
/*
 * Exposures: making a range of a region reachable by one peer, and ending that.
 *
 * The range is cut into fast registrations of one page less than the device takes
 * (rxe 512, siw 256). They are in the link's PD and are posted on the link's control
 * QP. The peer is granted the table of their addresses, lengths and rkeys.
 *
 * Why one page less: rxe of 6.1 looks at the array of maps past the last page of a
 * copy (rxe_mr_copy). If a registration fills its last map, rxe reads past the array.
 *
 * Each entry given to kxfer_device_map_mr() is built as a DMA address and a length that
 * start where the registration starts: siw ignores an offset into the first entry.
 *
 * Peers read and write the memory without notice, so the device has to reach the
 * memory itself. On a device that sees copies (bounce buffers) only the module's own
 * memory is registered, which never changes.
 *
 * Deregistering is the fence: ib_dereg_mr() returns when no responder of the
 * device uses the registration any more (rxe and siw wait for references). A
 * LOCAL_INV would only mark the key.
 *
 * Context: registering and deregistering may sleep.
 */
#include "base/log.h"

#include <linux/kxfer.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/plan.h"
#include "link/lane.h"
#include "link/link.h"
#include "node/device.h"
#include "node/memory.h"
#include "node/region.h"
#include "share/export.h"
#include "share/exposure.h"

/* Position in the mapping's extents where the next registration starts. */
struct cursor {
	const struct kxfer_extent *extent;
	u64 offset;		/* within the extent */
	u64 left;		/* bytes not yet registered */
	u64 start;		/* bytes registered: offset within the export */
};

static void cursor_init(struct cursor *cursor, const struct kxfer_exposure *exposure)
{
	const struct kxfer_export *export = exposure->export;

	cursor->extent = exposure->mapping->extents;
	cursor->offset = export->offset;
	while (cursor->offset >= cursor->extent->length)
		cursor->offset -= (cursor->extent++)->length;
	cursor->left = export->length;
	cursor->start = 0;
}

/* Fill a scatter list with at most @max_pages pages. Return: number of its entries. */
static u32 fill_sg(struct cursor *cursor, struct scatterlist *sg, u32 max_pages)
{
	u32 pages = 0, nents = 0;

	sg_init_table(sg, max_pages);
	while (cursor->left && pages < max_pages) {
		u64 addr = cursor->extent->addr + cursor->offset;
		u64 room = (u64)(max_pages - pages) * PAGE_SIZE - offset_in_page(addr);
		u64 length = min3(cursor->extent->length - cursor->offset, cursor->left, room);

		sg_dma_address(&sg[nents]) = addr;
		sg_dma_len(&sg[nents]) = length;
		nents++;
		pages += DIV_ROUND_UP(offset_in_page(addr) + length, PAGE_SIZE);
		cursor->left -= length;
		cursor->start += length;
		cursor->offset += length;
		if (cursor->offset == cursor->extent->length) {
			cursor->extent++;
			cursor->offset = 0;
		}
	}
	return nents;
}

static int access_flags(u32 rights)
{
	int access = 0;

	if (rights & KXFER_RIGHT_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (rights & KXFER_RIGHT_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	if (rights & KXFER_RIGHT_ATOMIC)
		access |= IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_LOCAL_WRITE;
	return access;
}

/* Register the next piece. */
static int register_next(struct kxfer_exposure *exposure, struct cursor *cursor,
			 struct scatterlist *sg, u32 max_pages)
{
	struct kxfer_link *link = exposure->link;
	u64 start = cursor->start;
	struct ib_mr *mr;
	u32 nents;
	int ret;

	mr = kxfer_lane_alloc_mr(link->control, max_pages + 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	exposure->mrs[exposure->nr_keys] = mr;
	nents = fill_sg(cursor, sg, max_pages);
	exposure->keys[exposure->nr_keys++] = (struct kxfer_extent) {
		.start = start,
		.length = cursor->start - start,
	};
	ret = kxfer_fault_error(EXPOSURE_MAP) ?: kxfer_device_map_mr(mr, sg, nents);
	if (ret)
		return ret;
	exposure->keys[exposure->nr_keys - 1].addr = mr->iova;
	exposure->keys[exposure->nr_keys - 1].key = mr->rkey;
	return kxfer_lane_register(link->control, mr, mr->rkey,
				   access_flags(exposure->rights));
}

/* @nr_pages: spanned by an export. Return: most pages that one registration covers. */
static u32 pages_of_one(const struct kxfer_device *dev, u64 nr_pages)
{
	return clamp_t(u64, nr_pages, 2, dev->max_fast_reg_pages - 1);
}

/**
 * kxfer_exposure_registrations() - number of registrations of an exposure
 * @export: export that is bound to its region
 * @dev: device of the link
 *
 * Return: number of registrations, at least 1.
 */
u32 kxfer_exposure_registrations(const struct kxfer_export *export,
				 const struct kxfer_device *dev)
{
	u64 first = export->region->memory->offset + export->offset;
	u64 nr_pages = DIV_ROUND_UP_ULL(offset_in_page(first) + export->length, PAGE_SIZE);

	return DIV_ROUND_UP_ULL(nr_pages, pages_of_one(dev, nr_pages));
}

static int alloc_tables(struct kxfer_exposure *exposure, u32 max_pages)
{
	u64 max_keys = div_u64(exposure->export->length,
			       (max_pages - 1) * PAGE_SIZE) + 2;

	exposure->mrs = kxfer_fault(EXPOSURE_MRS) ? NULL :
			kvcalloc(max_keys, sizeof(*exposure->mrs), KXFER_GFP_FOR_PEER);
	exposure->keys = kxfer_fault(EXPOSURE_KEYS) ? NULL :
			 kvcalloc(max_keys, sizeof(*exposure->keys), KXFER_GFP_FOR_PEER);
	return exposure->mrs && exposure->keys ? 0 : -ENOMEM;
}

/**
 * kxfer_exposure_register() - register an export on a link
 * @exposure: exposure in its lists, not used before its @ready
 *
 * A mailbox has nothing to register. Runs in a handler of the link. Return: 0 or
 * -errno, -EOPNOTSUPP where the device sees a copy; on failure
 * kxfer_exposure_deregister() destroys what was made.
 */
int kxfer_exposure_register(struct kxfer_exposure *exposure)
{
	struct kxfer_device *dev = exposure->link->dev;
	u64 pages = DIV_ROUND_UP_ULL(exposure->export->length, PAGE_SIZE) + 1;
	u32 max_pages = pages_of_one(dev, pages);
	struct kxfer_mapping *mapping;
	struct cursor cursor;
	struct scatterlist *sg;
	int ret;

	if (exposure->export->mailbox)
		return 0;
	if (!dev->in_place && exposure->export->region->memory->mm) {
		kxfer_notice("link %llu: export %s refused: %s sees memory through bounce buffers",
			     exposure->link->id, exposure->export->name,
			     dev_name(&dev->ibdev->dev));
		return -EOPNOTSUPP;
	}
	mapping = kxfer_mapping_get(exposure->export->region, dev);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	exposure->mapping = mapping;
	ret = alloc_tables(exposure, max_pages);
	if (ret)
		return ret;
	sg = kxfer_fault(EXPOSURE_SG) ? NULL :
	     kvmalloc_array(max_pages, sizeof(*sg), KXFER_GFP_FOR_PEER);
	if (!sg)
		return -ENOMEM;
	cursor_init(&cursor, exposure);
	mutex_lock(&exposure->link->register_mutex);
	while (!ret && cursor.left)
		ret = register_next(exposure, &cursor, sg, max_pages);
	mutex_unlock(&exposure->link->register_mutex);
	kvfree(sg);
	return ret;
}

/**
 * kxfer_exposure_deregister() - end the peer's access for good
 * @exposure: exposure taken off its lists by the caller
 *
 * Called after the peer has said that it posts nothing more, or after the link's QPs
 * were destroyed. Afterwards the memory may be unpinned.
 */
void kxfer_exposure_deregister(struct kxfer_exposure *exposure)
{
	u32 i;

	for (i = 0; i < exposure->nr_keys; i++)
		kxfer_lane_dereg_mr(exposure->link->control, exposure->mrs[i]);
	if (exposure->mapping)
		kxfer_mapping_put(exposure->mapping, 1);
	exposure->mapping = NULL;
	kvfree(exposure->mrs);
	exposure->mrs = NULL;
}
