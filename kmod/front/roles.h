/* SPDX-License-Identifier: GPL-2.0 */
/* What shared links are for. See roles.c. */
#ifndef KXFER_ROLES_H
#define KXFER_ROLES_H

struct kxfer_link_ops;

extern const struct kxfer_link_ops kxfer_role_initiator;
extern const struct kxfer_link_ops kxfer_role_passive;

#endif /* KXFER_ROLES_H */
