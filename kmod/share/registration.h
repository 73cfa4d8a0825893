/* SPDX-License-Identifier: GPL-2.0 */
/* Registration of an export on a link. See registration.c. */
#ifndef KXFER_REGISTRATION_H
#define KXFER_REGISTRATION_H

#include <linux/types.h>

struct kxfer_device;
struct kxfer_export;
struct kxfer_exposure;

u32 kxfer_registration_count(const struct kxfer_export *export, const struct kxfer_device *dev);
int kxfer_registration_make(struct kxfer_exposure *exposure);
void kxfer_registration_end(struct kxfer_exposure *exposure);

#endif /* KXFER_REGISTRATION_H */
