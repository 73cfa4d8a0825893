/* SPDX-License-Identifier: GPL-2.0 */
/* Registration of an export on a link. See exposure.c. */
#ifndef KXFER_EXPOSURE_H
#define KXFER_EXPOSURE_H

struct kxfer_exposure;

int kxfer_exposure_register(struct kxfer_exposure *exposure);
void kxfer_exposure_deregister(struct kxfer_exposure *exposure);

#endif /* KXFER_EXPOSURE_H */
