// SPDX-License-Identifier: GPL-2.0
/*
 * Bus: the layer between memory and a DMA device, for a device that is software. For tests
 * only; built into siw by scripts/build-kmod.
 *
 * A soft device without DMA takes kernel addresses for bus addresses, so mistakes in mapping go
 * unnoticed. Here each mapping gets separate bus addresses, as from an IOMMU, which the device
 * has to translate before it touches memory. They resemble neither kernel nor physical
 * addresses and are never used a second time. An address that was never mapped, is no longer
 * mapped, lies outside the mapping or is used against its direction is refused.
 *
 * A *bounced* mapping shows the device a copy. As in the DMA API, the copy is made when the
 * memory is mapped or synced for the device, and copied back when it is unmapped or synced for
 * the CPU: a missing sync means old bytes. Memory that a device only writes (DMA_FROM_DEVICE)
 * is not copied in but filled with POISON. Mappings by dma_map_single() and _page() are
 * bounced, because their users have to sync. Scatter lists are seen in place, as by a coherent
 * device behind an IOMMU. On the network interface named by the parameter `bounce` they are
 * bounced too, as with swiotlb=force. Here, as in the DMA API, dma_max_mapping_size()
 * distinguishes the two cases.
 *
 * Neighbours of a scatter list that meet at page borders share a segment, so there are fewer
 * segments than entries, and none is longer than dma_get_max_seg_size(). As with an IOMMU on a
 * machine that is not coherent, mappings in place are synced by the CPU's addresses: a single
 * address from its beginning on, and a scatter list by its pages. Either has to match the
 * mapping.
 *
 * Each breach of the DMA API is logged with a line that begins with WARNING: (the first
 * MAX_COMPLAINTS), and counted in debugfs, siw-dma/complaints. siw-dma/mappings counts the
 * current mappings; mappings left when the device is removed are a breach too.
 *
 * Context: mapping and unmapping sleep; the rest does not.
 */
#define pr_fmt(fmt) "siw-dma: " fmt

#include <linux/debugfs.h>
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "bus.h"

#ifndef CONFIG_X86_64
#error "all memory has to have a kernel address: x86-64 only"
#endif
#if !defined(CONFIG_DMA_OPS) && !defined(CONFIG_ARCH_HAS_DMA_OPS)
#error "dma_map_ops are missing: CONFIG_GART_IOMMU or CONFIG_XEN select them"
#endif

#define SLOT_SHIFT	40	/* bus address of a mapping: its id, and 1 TiB of offsets */
#define SLOT_MASK	(BIT_ULL(SLOT_SHIFT) - 1)
#define MAX_COMPLAINTS	20
#define BOUNCED_BYTES	SZ_256K	/* largest mapping of swiotlb */
#define POISON		0xb5

static char *bounce = "";
module_param(bounce, charp, 0444);
MODULE_PARM_DESC(bounce, "network interface whose RDMA device sees copies of scatter lists");

/* A contiguous piece of memory, and its start in the mapping's slot. */
struct piece {
	void *memory;
	u64 start;
	u32 bytes;
};

struct mapping {
	struct rcu_head rcu;
	u64 id;
	u64 end;		/* offset in the slot after the last byte */
	void *view;		/* memory that the device sees at offset 0 of the slot */
	enum dma_data_direction dir;
	bool bounced;
	bool users;		/* memory of user verbs, which never sync */
	u32 nr_pages;
	u32 nr_pieces;
	struct piece pieces[];
};

struct bus {
	struct ib_device *ibdev;
	struct platform_device *pdev;
	struct xarray mappings;
	u64 last_id;
	bool bounced;
};

static DEFINE_XARRAY(buses);		/* buses by address of the ib_device */
static DEFINE_SPINLOCK(id_lock);
static atomic_t nr_mappings = ATOMIC_INIT(0);
static atomic_t nr_complaints = ATOMIC_INIT(0);
static struct dentry *directory;

#define complain(fmt, ...) do {							\
	if (atomic_inc_return(&nr_complaints) <= MAX_COMPLAINTS) {		\
		pr_err("WARNING: " fmt "\n", ##__VA_ARGS__);			\
		dump_stack_lvl(KERN_INFO);					\
	}									\
} while (0)

/* Must be called under rcu_read_lock(). */
static struct mapping *find(struct bus *bus, u64 addr)
{
	return xa_load(&bus->mappings, addr >> SLOT_SHIFT);
}

static u64 first_byte(const struct mapping *mapping)
{
	return mapping->pieces[0].start;
}

static bool covers(const struct mapping *mapping, u64 addr, u64 bytes)
{
	u64 start = addr & SLOT_MASK;

	return start >= first_byte(mapping) && start + bytes <= mapping->end;
}

/* ---- copying ---- */

static bool to_device(enum dma_data_direction dir)
{
	return dir == DMA_TO_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static bool from_device(enum dma_data_direction dir)
{
	return dir == DMA_FROM_DEVICE || dir == DMA_BIDIRECTIONAL;
}

/* Bytes [start, end) of the slot. */
static void copy(struct mapping *mapping, u64 start, u64 end, bool in)
{
	u32 i;

	for (i = 0; i < mapping->nr_pieces; i++) {
		struct piece *piece = &mapping->pieces[i];
		u64 from = max(start, piece->start);
		u64 to = min(end, piece->start + piece->bytes);

		if (from >= to)
			continue;
		if (in)
			memcpy(mapping->view + from,
			       piece->memory + (from - piece->start), to - from);
		else
			memcpy(piece->memory + (from - piece->start),
			       mapping->view + from, to - from);
	}
}

static void copy_in(struct mapping *mapping, u64 start, u64 end)
{
	if (mapping->bounced && !mapping->users && to_device(mapping->dir))
		copy(mapping, start, end, true);
}

static void copy_back(struct mapping *mapping, u64 start, u64 end)
{
	if (mapping->bounced && !mapping->users && from_device(mapping->dir))
		copy(mapping, start, end, false);
}

/* ---- making and ending a mapping ---- */

static void lay_out(struct mapping *mapping, struct scatterlist *sgl, int nents)
{
	struct scatterlist *sg;
	u64 at = 0;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		/* A piece continues the segment before it if both meet at a page border. */
		if (offset_in_page(at) || offset_in_page(sg->offset))
			at = PAGE_ALIGN(at) + offset_in_page(sg->offset);
		mapping->pieces[i] = (struct piece) {
			.memory = sg_virt(sg),
			.start = at,
			.bytes = sg->length,
		};
		at += sg->length;
	}
	mapping->end = at;
	mapping->nr_pages = DIV_ROUND_UP_ULL(at, PAGE_SIZE);
}

static void *view_in_place(const struct mapping *mapping)
{
	struct page **pages;
	u64 offset;
	void *view;
	u32 i;

	pages = kvmalloc_array(mapping->nr_pages, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return NULL;
	for (i = 0; i < mapping->nr_pieces; i++) {
		const struct piece *piece = &mapping->pieces[i];

		for (offset = 0; offset < offset_in_page(piece->start) + piece->bytes;
		     offset += PAGE_SIZE)
			pages[(piece->start + offset) >> PAGE_SHIFT] =
				virt_to_page((char *)PTR_ALIGN_DOWN(piece->memory, PAGE_SIZE) +
					     offset);
	}
	view = vmap(pages, mapping->nr_pages, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return view;
}

static void destroy(struct mapping *mapping)
{
	if (mapping->bounced)
		vfree(mapping->view);
	else
		vunmap(mapping->view);
	kvfree(mapping);
}

static struct mapping *create(struct scatterlist *sgl, int nents, bool bounced,
			      enum dma_data_direction dir)
{
	struct mapping *mapping;

	mapping = kvzalloc(struct_size(mapping, pieces, nents), GFP_KERNEL);
	if (!mapping)
		return NULL;
	mapping->nr_pieces = nents;
	mapping->bounced = bounced;
	mapping->dir = dir;
	lay_out(mapping, sgl, nents);
	if (bounced)
		mapping->view = vmalloc((u64)mapping->nr_pages << PAGE_SHIFT);
	else
		mapping->view = view_in_place(mapping);
	if (!mapping->view) {
		kvfree(mapping);
		return NULL;
	}
	if (bounced)
		memset(mapping->view, POISON, (u64)mapping->nr_pages << PAGE_SHIFT);
	copy_in(mapping, 0, mapping->end);
	return mapping;
}

static struct mapping *map(struct device *dev, struct scatterlist *sgl, int nents,
			   bool bounced, enum dma_data_direction dir)
{
	struct bus *bus = dev_get_drvdata(dev);
	struct mapping *mapping;

	might_sleep();
	mapping = create(sgl, nents, bounced, dir);
	if (!mapping)
		return NULL;
	spin_lock(&id_lock);
	mapping->id = ++bus->last_id;
	spin_unlock(&id_lock);
	if (xa_err(xa_store(&bus->mappings, mapping->id, mapping, GFP_KERNEL))) {
		destroy(mapping);
		return NULL;
	}
	atomic_inc(&nr_mappings);
	return mapping;
}

static void unmap(struct device *dev, u64 addr, u64 bytes, int nents,
		  enum dma_data_direction dir, unsigned long attrs)
{
	struct bus *bus = dev_get_drvdata(dev);
	struct mapping *mapping = xa_erase(&bus->mappings, addr >> SLOT_SHIFT);

	might_sleep();
	if (!mapping) {
		complain("what is unmapped is not mapped: %#llx", addr);
		return;
	}
	atomic_dec(&nr_mappings);
	if (dir != mapping->dir)
		complain("mapped in direction %d, unmapped in %d", mapping->dir, dir);
	if ((addr & SLOT_MASK) != first_byte(mapping) ||
	    (bytes && bytes != mapping->end - first_byte(mapping)) ||
	    (nents && nents != mapping->nr_pieces))
		complain("%llu bytes in %u pieces mapped, %llu in %d unmapped",
			 mapping->end - first_byte(mapping), mapping->nr_pieces, bytes, nents);
	if (!(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		copy_back(mapping, 0, mapping->end);
	synchronize_rcu();
	destroy(mapping);
}

/* ---- the DMA API ---- */

static dma_addr_t map_page(struct device *dev, struct page *page, unsigned long offset,
			   size_t bytes, enum dma_data_direction dir, unsigned long attrs)
{
	struct mapping *mapping;
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	sg_set_page(&sg, page, bytes, offset);
	mapping = map(dev, &sg, 1, true, dir);
	if (!mapping)
		return DMA_MAPPING_ERROR;
	return mapping->id << SLOT_SHIFT | first_byte(mapping);
}

static void unmap_page(struct device *dev, dma_addr_t addr, size_t bytes,
		       enum dma_data_direction dir, unsigned long attrs)
{
	unmap(dev, addr, bytes, 1, dir, attrs);
}

/* Assigns bus addresses, with as many bytes in a segment as the device takes. */
static int fill_addresses(struct device *dev, struct mapping *mapping,
			  struct scatterlist *sgl)
{
	u32 max_bytes = dma_get_max_seg_size(dev), i;
	struct scatterlist *sg = NULL;
	u64 end = 0;
	int n = 0;

	for (i = 0; i < mapping->nr_pieces; i++) {
		struct piece *piece = &mapping->pieces[i];

		/* The system heap makes the list of a dma-buf for no device in particular. */
		if (piece->bytes > max_bytes &&
		    folio_maybe_dma_pinned(virt_to_folio(piece->memory)))
			complain("a segment of %u bytes, the device takes %u",
				 piece->bytes, max_bytes);
		if (sg && end == piece->start && sg_dma_len(sg) + piece->bytes <= max_bytes) {
			sg_dma_len(sg) += piece->bytes;
		} else {
			sg = sg ? sg_next(sg) : sgl;
			sg_dma_address(sg) = mapping->id << SLOT_SHIFT | piece->start;
			sg_dma_len(sg) = piece->bytes;
			n++;
		}
		end = piece->start + piece->bytes;
	}
	/*
	 * Spoils the entries after the last segment, for code that walks up to the CPU's end of
	 * the list.
	 */
	for (i = n; i < mapping->nr_pieces; i++) {
		sg = sg_next(sg);
		sg_dma_address(sg) = DMA_MAPPING_ERROR;
		sg_dma_len(sg) = 0;
	}
	return n;
}

static int map_sg(struct device *dev, struct scatterlist *sgl, int nents,
		  enum dma_data_direction dir, unsigned long attrs)
{
	struct bus *bus = dev_get_drvdata(dev);
	struct mapping *mapping = map(dev, sgl, nents, bus->bounced, dir);

	return mapping ? fill_addresses(dev, mapping, sgl) : -ENOMEM;
}

static void unmap_sg(struct device *dev, struct scatterlist *sgl, int nents,
		     enum dma_data_direction dir, unsigned long attrs)
{
	unmap(dev, sg_dma_address(sgl), 0, nents, dir, attrs);
}

static void sync(struct device *dev, u64 addr, size_t bytes,
		 enum dma_data_direction dir, bool in)
{
	struct bus *bus = dev_get_drvdata(dev);
	u64 start = addr & SLOT_MASK;
	struct mapping *mapping;

	rcu_read_lock();
	mapping = find(bus, addr);
	if (!mapping || !covers(mapping, addr, bytes))
		complain("%zu bytes at %#llx are synced and not mapped", bytes, addr);
	else if (mapping->dir != dir && mapping->dir != DMA_BIDIRECTIONAL)
		complain("mapped in direction %d, synced in %d", mapping->dir, dir);
	else if (in && to_device(dir))
		copy_in(mapping, start, start + bytes);
	else if (!in && from_device(dir))
		copy_back(mapping, start, start + bytes);
	rcu_read_unlock();
}

/* Whether the range is contiguous for the CPU too, and begins at @memory. NULL: anywhere. */
static bool lies_there(const struct mapping *mapping, u64 start, u64 bytes, const void *memory)
{
	const struct piece *piece;
	u32 i;

	for (i = 0; i < mapping->nr_pieces; i++) {
		piece = &mapping->pieces[i];
		if (start >= piece->start && start < piece->start + piece->bytes)
			return start + bytes <= piece->start + piece->bytes &&
			       (!memory || memory == piece->memory + (start - piece->start));
	}
	return false;
}

static void check_sync(struct device *dev, u64 addr, size_t bytes, const void *memory)
{
	struct bus *bus = dev_get_drvdata(dev);
	struct mapping *mapping;

	rcu_read_lock();
	mapping = find(bus, addr);
	if (mapping && !mapping->bounced && covers(mapping, addr, bytes) &&
	    !lies_there(mapping, addr & SLOT_MASK, bytes, memory))
		complain("%zu bytes at %#llx are synced and lie elsewhere for the CPU", bytes,
			 addr);
	rcu_read_unlock();
}

static void sync_single_for_cpu(struct device *dev, dma_addr_t addr, size_t bytes,
				enum dma_data_direction dir)
{
	check_sync(dev, addr, bytes, NULL);
	sync(dev, addr, bytes, dir, false);
}

static void sync_single_for_device(struct device *dev, dma_addr_t addr, size_t bytes,
				   enum dma_data_direction dir)
{
	check_sync(dev, addr, bytes, NULL);
	sync(dev, addr, bytes, dir, true);
}

/*
 * Syncs an entry for each piece, or the whole list, whose first entries are the device's
 * segments.
 */
static void sync_sg(struct device *dev, struct scatterlist *sgl, int nents,
		    enum dma_data_direction dir, bool in)
{
	struct scatterlist *sg;
	int i;

	if (nents == 1)
		check_sync(dev, sg_dma_address(sgl), sgl->length, sg_virt(sgl));
	for_each_sg(sgl, sg, nents, i)
		if (sg_dma_len(sg))
			sync(dev, sg_dma_address(sg), sg_dma_len(sg), dir, in);
}

static void sync_sg_for_cpu(struct device *dev, struct scatterlist *sgl, int nents,
			    enum dma_data_direction dir)
{
	sync_sg(dev, sgl, nents, dir, false);
}

static void sync_sg_for_device(struct device *dev, struct scatterlist *sgl, int nents,
			       enum dma_data_direction dir)
{
	sync_sg(dev, sgl, nents, dir, true);
}

static size_t max_mapping_size(struct device *dev)
{
	struct bus *bus = dev_get_drvdata(dev);

	return bus->bounced ? BOUNCED_BYTES : SIZE_MAX;
}

static const struct dma_map_ops bus_ops = {
	.map_page = map_page,
	.unmap_page = unmap_page,
	.map_sg = map_sg,
	.unmap_sg = unmap_sg,
	.sync_single_for_cpu = sync_single_for_cpu,
	.sync_single_for_device = sync_single_for_device,
	.sync_sg_for_cpu = sync_sg_for_cpu,
	.sync_sg_for_device = sync_sg_for_device,
	.max_mapping_size = max_mapping_size,
};

/* ---- the device's side ---- */

/**
 * bus_to_virt() - translate a bus address for the device
 * @ibdev: attached device
 * @addr: bus address
 * @bytes: bytes that the device will access
 * @write: whether the device will write
 *
 * Return: a kernel address, or NULL if the bus refuses.
 */
void *bus_to_virt(struct ib_device *ibdev, u64 addr, size_t bytes, bool write)
{
	struct bus *bus = xa_load(&buses, (unsigned long)ibdev);
	struct mapping *mapping;
	void *virt = NULL;

	rcu_read_lock();
	mapping = bus ? find(bus, addr) : NULL;
	if (!mapping || !covers(mapping, addr, bytes))
		complain("the device %s %zu bytes at %#llx, which are not mapped",
			 write ? "writes" : "reads", bytes, addr);
	else if (write ? !from_device(mapping->dir) : !to_device(mapping->dir))
		complain("the device %s what is mapped in direction %d",
			 write ? "writes" : "reads", mapping->dir);
	else
		virt = mapping->view + (addr & SLOT_MASK);
	rcu_read_unlock();
	return virt;
}

/** bus_to_page() - the page in which the device reads a bus address, or NULL */
struct page *bus_to_page(struct ib_device *ibdev, u64 addr)
{
	void *virt = bus_to_virt(ibdev, addr, 1, false);

	return virt ? vmalloc_to_page(virt) : NULL;
}

/**
 * bus_leave_to_user() - the mapping at a bus address belongs to user verbs
 * @ibdev: attached device
 * @addr: bus address
 *
 * siw accesses such memory by its pages, so nothing is copied.
 */
void bus_leave_to_user(struct ib_device *ibdev, u64 addr)
{
	struct bus *bus = xa_load(&buses, (unsigned long)ibdev);
	struct mapping *mapping;

	rcu_read_lock();
	mapping = bus ? find(bus, addr) : NULL;
	if (mapping)
		mapping->users = true;
	rcu_read_unlock();
}

/**
 * bus_attach() - put a device on a bus of its own
 * @ibdev: device that is about to be registered
 *
 * Return: its DMA device, or NULL.
 */
struct device *bus_attach(struct ib_device *ibdev)
{
	struct platform_device *pdev;
	struct bus *bus;

	bus = kzalloc(sizeof(*bus), GFP_KERNEL);
	if (!bus)
		return NULL;
	pdev = platform_device_register_simple("siw-dma", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(pdev))
		goto err_free;
	bus->ibdev = ibdev;
	bus->pdev = pdev;
	bus->bounced = !strcmp(ibdev->iw_ifname, bounce);
	xa_init(&bus->mappings);
	platform_set_drvdata(pdev, bus);
	set_dma_ops(&pdev->dev, &bus_ops);
	if (dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64)) ||
	    xa_err(xa_store(&buses, (unsigned long)ibdev, bus, GFP_KERNEL)))
		goto err_device;
	return &pdev->dev;

err_device:
	platform_device_unregister(pdev);
err_free:
	kfree(bus);
	return NULL;
}

/** bus_detach() - take a device off its bus; all its mappings must have ended */
void bus_detach(struct ib_device *ibdev)
{
	struct bus *bus = xa_erase(&buses, (unsigned long)ibdev);
	struct mapping *mapping;
	unsigned long id;

	if (!bus)
		return;
	xa_for_each(&bus->mappings, id, mapping) {
		complain("the device goes and %llu bytes in %u pieces are mapped in direction %d",
			 mapping->end - first_byte(mapping), mapping->nr_pieces, mapping->dir);
		atomic_dec(&nr_mappings);
		destroy(mapping);
	}
	xa_destroy(&bus->mappings);
	platform_device_unregister(bus->pdev);
	kfree(bus);
}

/** bus_complain() - report a breach that a real device would not tolerate */
void bus_complain(const char *what)
{
	complain("%s", what);
}

/** bus_init() - call before the first device */
int bus_init(void)
{
	directory = debugfs_create_dir("siw-dma", NULL);
	debugfs_create_atomic_t("mappings", 0444, directory, &nr_mappings);
	debugfs_create_atomic_t("complaints", 0444, directory, &nr_complaints);
	return 0;
}

/** bus_exit() - call after the last device */
void bus_exit(void)
{
	debugfs_remove(directory);
	xa_destroy(&buses);
}
