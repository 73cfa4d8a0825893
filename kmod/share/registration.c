// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations of an exposure: making a range of a region reachable by one peer, and ending
 * that.
 *
 * The range is cut into fast registrations of one page less than the device takes
 * (rxe 512, siw 256). They are in the link's PD and are posted on the link's control
 * QP. The peer is granted the table of their addresses, lengths and rkeys.
 *
 * Why one page less: rxe of 6.1 looks at the array of maps past the last page of a
 * copy (rxe_mr_copy). If a registration fills its last map, rxe reads past the array.
 *
 * The pages of a registration have 4 KiB, or 2 MiB (KXFER_LARGE_PAGE) if the device takes
 * that and no border between contiguous pieces of the export is inside such a page. The first
 * and the last page may reach beyond the export: the device checks each access against address
 * and length of the registration. The size is decided by the memory alone, so that as many
 * registrations are made as EXPORT_ADD has charged. Only where the DMA mapping has other
 * borders than the memory, or where the device refuses 2 MiB, does the export get 4 KiB pages
 * and more registrations than that.
 *
 * Each entry given to kxfer_device_map_mr() is built as a DMA address and a length that
 * start where the registration starts: siw ignores an offset into the first entry.
 *
 * Peers read and write the memory without notice, so the device has to reach the
 * memory itself. On a device that sees copies (bounce buffers) only the module's own
 * memory is registered, which never changes. A dma-buf is mapped for no such device, and has
 * pages of 4 KiB here, since its borders are known only when it is mapped.
 *
 * Deregistering ends the access: ib_dereg_mr() returns when no responder of the
 * device uses the registration any more (rxe and siw wait for references). A
 * LOCAL_INV would only mark the key.
 *
 * Context: registering and deregistering may sleep.
 */
#include "base/log.h"

#include <linux/kxfer.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "base/plan.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/memory.h"
#include "node/region.h"
#include "share/export.h"
#include "share/exposure.h"
#include "share/registration.h"

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

static u64 cursor_addr(const struct cursor *cursor)
{
	return cursor->extent->addr + cursor->offset;
}

/* Move past bytes of the extent, at most @max. Return: number of bytes. */
static __always_inline u64 take_piece(struct cursor *cursor, u64 max)
{
	u64 length = min3(cursor->extent->length - cursor->offset, cursor->left, max);

	cursor->left -= length;
	cursor->start += length;
	cursor->offset += length;
	if (cursor->offset == cursor->extent->length) {
		cursor->extent++;
		cursor->offset = 0;
	}
	return length;
}

/* As take_piece(), but extents that abut in address are one piece: a device may limit extents. */
static __always_inline u64 take_run(struct cursor *cursor, u64 max)
{
	u64 addr = cursor_addr(cursor), taken = 0;

	do {
		taken += take_piece(cursor, max - taken);
	} while (cursor->left && taken < max && cursor_addr(cursor) == addr + taken);
	return taken;
}

/* Whether all borders between the runs of an exposure are borders of large pages. */
static bool fits_large_pages(const struct kxfer_exposure *exposure)
{
	struct cursor cursor;
	u64 addr, end = 0;

	cursor_init(&cursor, exposure);
	while (cursor.left) {
		addr = cursor_addr(&cursor);
		if (cursor.start && (addr | end) % KXFER_LARGE_PAGE)
			return false;
		end = addr + take_run(&cursor, U64_MAX);
	}
	return true;
}

/*
 * Fill a scatter list with at most @max_pages pages. Return: number of its entries. Scattered
 * memory has an entry for each page, so the cursor is kept in registers.
 */
static u32 fill_sg(struct cursor *at, struct scatterlist *sg, u32 max_pages, u32 page_size)
{
	u32 pages = 0, nents = 0, shift = ilog2(page_size), offset, room, length;
	struct cursor cursor = *at;
	u64 addr;

	sg_init_table(sg, max_pages);
	while (cursor.left && pages < max_pages) {
		addr = cursor_addr(&cursor);
		offset = addr & (page_size - 1);
		room = ((max_pages - pages) << shift) - offset;
		length = page_size == PAGE_SIZE ? take_piece(&cursor, room) :
						  take_run(&cursor, room);
		sg_dma_address(&sg[nents]) = addr;
		sg_dma_len(&sg[nents++]) = length;
		pages += (offset + length + page_size - 1) >> shift;
	}
	*at = cursor;
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
			 struct scatterlist *sg, u32 max_pages, u32 page_size)
{
	struct kxfer_link *link = exposure->link;
	u64 start = cursor->start;
	struct ib_mr *mr;
	u32 nents;
	int ret;

	mr = kxfer_mr_alloc(link->control, max_pages + 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	exposure->mrs[exposure->nr_keys] = mr;
	nents = fill_sg(cursor, sg, max_pages, page_size);
	exposure->keys[exposure->nr_keys++] = (struct kxfer_extent) {
		.start = start,
		.length = cursor->start - start,
	};
	ret = kxfer_try(EXPOSURE_MAP, kxfer_device_map_mr(mr, sg, nents, page_size));
	if (ret)
		return ret;
	exposure->keys[exposure->nr_keys - 1].addr = mr->iova;
	exposure->keys[exposure->nr_keys - 1].key = mr->rkey;
	return kxfer_mr_register(link->control, mr, mr->rkey,
				   access_flags(exposure->rights));
}

/* @nr_pages: spanned by an export. Return: most pages that one registration covers. */
static u32 pages_of_one(const struct kxfer_device *dev, u64 nr_pages)
{
	return clamp_t(u64, nr_pages, 2, dev->max_fast_reg_pages - 1);
}

/* Whether page @i of the memory does not follow page @i - 1 and is not on a large border too. */
static bool is_small_border(struct page **pages, unsigned long i)
{
	unsigned long before = page_to_pfn(pages[i - 1]) + 1, after = page_to_pfn(pages[i]);

	return before != after && (before | after) % (KXFER_LARGE_PAGE / PAGE_SIZE);
}

/* Without the lengths of the segments the memory has many, which is not worth looking for. */
static u32 page_size_of(const struct kxfer_export *export, const struct kxfer_device *dev)
{
	const struct kxfer_memory *memory = export->region->memory;
	u64 start = memory->offset + export->offset;
	unsigned long first = start / PAGE_SIZE;
	unsigned long last = (start + export->length - 1) / PAGE_SIZE, i;
	u32 *nr = memory->segments;

	if (!dev->large_pages || !nr || export->length < KXFER_LARGE_PAGE)
		return PAGE_SIZE;
	for (i = *nr; i <= last; i += *++nr)
		if (i > first && is_small_border(memory->pages, i))
			return PAGE_SIZE;
	return KXFER_LARGE_PAGE;
}

/**
 * kxfer_registration_count() - number of registrations of an exposure
 * @export: export that is bound to its region
 * @dev: device of the link
 *
 * Return: number of registrations, at least 1.
 */
u32 kxfer_registration_count(const struct kxfer_export *export, const struct kxfer_device *dev)
{
	struct kxfer_memory *memory = export->region->memory;
	u64 start = memory->offset + export->offset;
	u32 page_size = page_size_of(export, dev);
	u64 addr = offset_in_page(start) +
		   (memory->pages ? page_to_phys(memory->pages[start / PAGE_SIZE]) : 0);
	u64 nr_pages = DIV_ROUND_UP_ULL((addr & (page_size - 1)) + export->length, page_size);

	return DIV_ROUND_UP_ULL(nr_pages, pages_of_one(dev, nr_pages));
}

static int alloc_tables(struct kxfer_exposure *exposure, u32 max_pages, u32 page_size)
{
	u64 max_keys = div_u64(exposure->export->length, (max_pages - 1) * page_size) + 2;

	exposure->mrs = kxfer_try_alloc(EXPOSURE_MRS, kvcalloc(max_keys, sizeof(*exposure->mrs),
							       KXFER_GFP_FOR_PEER));
	exposure->keys = kxfer_try_alloc(EXPOSURE_KEYS, kvcalloc(max_keys, sizeof(*exposure->keys),
								 KXFER_GFP_FOR_PEER));
	return exposure->mrs && exposure->keys ? 0 : -ENOMEM;
}

static void free_registrations(struct kxfer_exposure *exposure)
{
	u32 i;

	for (i = 0; i < exposure->nr_keys; i++)
		kxfer_mr_dereg(exposure->link->control, exposure->mrs[i]);
	kvfree(exposure->mrs);
	exposure->mrs = NULL;
}

/* Return: 0 or -errno, -EIO if the device refuses the pages. */
static int register_all(struct kxfer_exposure *exposure, u32 page_size)
{
	u64 pages = DIV_ROUND_UP_ULL(exposure->export->length, page_size) + 1;
	u32 max_pages = pages_of_one(exposure->link->dev, pages);
	struct cursor cursor;
	struct scatterlist *sg;
	int ret;

	ret = alloc_tables(exposure, max_pages, page_size);
	if (ret)
		return ret;
	sg = kxfer_try_alloc(EXPOSURE_SG,
			     kvmalloc_array(max_pages, sizeof(*sg), KXFER_GFP_FOR_PEER));
	if (!sg)
		return -ENOMEM;
	cursor_init(&cursor, exposure);
	mutex_lock(&exposure->link->register_mutex);
	while (!ret && cursor.left)
		ret = register_next(exposure, &cursor, sg, max_pages, page_size);
	mutex_unlock(&exposure->link->register_mutex);
	kvfree(sg);
	return ret;
}

/* Forget what was registered: no peer has seen a key of it. */
static void begin_anew(struct kxfer_exposure *exposure)
{
	free_registrations(exposure);
	kvfree(exposure->keys);
	exposure->keys = NULL;
	exposure->nr_keys = 0;
}

/**
 * kxfer_registration_make() - register an export on a link
 * @exposure: exposure in its lists, not used before its @ready
 *
 * A mailbox has nothing to register. Runs in a handler of the link. Return: 0 or
 * -errno, -EOPNOTSUPP where the device sees a copy; on failure
 * kxfer_registration_end() destroys what was made.
 */
int kxfer_registration_make(struct kxfer_exposure *exposure)
{
	struct kxfer_device *dev = exposure->link->dev;
	struct kxfer_export *export = exposure->export;
	struct kxfer_mapping *mapping;
	int ret;

	if (export->mailbox)
		return 0;
	if (!dev->in_place && export->region->memory->mm) {
		kxfer_notice("link %llu: export %s refused: %s sees memory through bounce buffers",
			     exposure->link->id, export->name, dev_name(&dev->ibdev->dev));
		return -EOPNOTSUPP;
	}
	mapping = kxfer_mapping_get(export->region, dev);
	if (IS_ERR(mapping))
		return PTR_ERR(mapping);
	exposure->mapping = mapping;
	if (page_size_of(export, dev) == KXFER_LARGE_PAGE && fits_large_pages(exposure)) {
		ret = register_all(exposure, KXFER_LARGE_PAGE);
		if (ret != -EIO)
			return ret;
		begin_anew(exposure);
	}
	return register_all(exposure, PAGE_SIZE);
}

/**
 * kxfer_registration_end() - end the peer's access for good
 * @exposure: exposure taken off its lists by the caller
 *
 * Called after the peer has said that it posts nothing more, or after the link's QPs
 * were destroyed. Afterwards the memory may be unpinned.
 */
void kxfer_registration_end(struct kxfer_exposure *exposure)
{
	free_registrations(exposure);
	if (exposure->mapping)
		kxfer_mapping_put(exposure->mapping, 1);
	exposure->mapping = NULL;
}
