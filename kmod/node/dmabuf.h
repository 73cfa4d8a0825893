/* SPDX-License-Identifier: GPL-2.0 */
/* Memory of other drivers, by the dma-buf framework. See dmabuf.c. */
#ifndef KXFER_DMABUF_H
#define KXFER_DMABUF_H

#include <linux/dma-direction.h>
#include <linux/err.h>
#include <linux/iosys-map.h>
#include <linux/types.h>

struct dma_buf;
struct dma_buf_attachment;
struct ib_device;
struct kxfer_extent;
struct sg_table;

/**
 * struct kxfer_attachment - a dma-buf as one device reaches it
 * @dmabuf: the buffer; its owner is the memory that has it
 * @direction: DMA_BIDIRECTIONAL, or DMA_TO_DEVICE
 * @importer: attachment of a device that works on DMA addresses; else NULL
 * @table: DMA addresses for @importer
 * @map: CPU addresses, for a device with virtual DMA
 */
struct kxfer_attachment {
	struct dma_buf *dmabuf;
	enum dma_data_direction direction;
	struct dma_buf_attachment *importer;
	struct sg_table *table;
	struct iosys_map map;
};

#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)
struct dma_buf *kxfer_dmabuf_get(int fd, u64 offset, u64 length, bool writable);
void kxfer_dmabuf_put(struct dma_buf *dmabuf);
int kxfer_dmabuf_attach(struct kxfer_attachment *attachment, struct ib_device *ibdev);
void kxfer_dmabuf_detach(struct kxfer_attachment *attachment);
u32 kxfer_dmabuf_extents(const struct kxfer_attachment *attachment, u64 offset, u64 length,
			 struct kxfer_extent *extents);
#else
static inline struct dma_buf *kxfer_dmabuf_get(int fd, u64 offset, u64 length, bool writable)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline void kxfer_dmabuf_put(struct dma_buf *dmabuf)
{
}

static inline int kxfer_dmabuf_attach(struct kxfer_attachment *attachment,
				      struct ib_device *ibdev)
{
	return -EOPNOTSUPP;
}

static inline void kxfer_dmabuf_detach(struct kxfer_attachment *attachment)
{
}

static inline u32 kxfer_dmabuf_extents(const struct kxfer_attachment *attachment, u64 offset,
				       u64 length, struct kxfer_extent *extents)
{
	return 0;
}
#endif

#endif /* KXFER_DMABUF_H */
