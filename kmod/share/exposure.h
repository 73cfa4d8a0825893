/* SPDX-License-Identifier: GPL-2.0 */
/* Registration of an export on a link. See exposure.c. */
#ifndef KXFER_EXPOSURE_H
#define KXFER_EXPOSURE_H

#include <linux/types.h>

struct kxfer_device;
struct kxfer_export;
struct kxfer_exposure;

u32 kxfer_exposure_registrations(const struct kxfer_export *export,
				 const struct kxfer_device *dev);
int kxfer_exposure_register(struct kxfer_exposure *exposure);
void kxfer_exposure_deregister(struct kxfer_exposure *exposure);

#endif /* KXFER_EXPOSURE_H */
