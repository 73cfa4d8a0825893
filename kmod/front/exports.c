// SPDX-License-Identifier: GPL-2.0
/*
 * Exports: the symbols of this module that kxfer_bench.ko uses, in the namespace KXFER.
 * Nothing else uses them, and any release may change them.
 */
#include "base/addr.h"
#include "base/compat.h"
#include "base/fault.h"
#include "base/plan.h"
#include "front/engine.h"
#include "job/chain.h"
#include "job/flow.h"
#include "job/job.h"
#include "job/target.h"
#include "link/cm.h"
#include "link/cq.h"
#include "link/lane.h"
#include "link/link.h"
#include "link/mr.h"
#include "node/charge.h"
#include "node/device.h"
#include "node/mapping.h"
#include "node/table.h"

/* front/engine.c */
KXFER_EXPORT(kxfer_engine_register);
KXFER_EXPORT(kxfer_engine_unregister);

/* job/chain.c */
KXFER_EXPORT(kxfer_chain_inline);

/* job/flow.c */
KXFER_EXPORT(kxfer_flow_lock_for);
KXFER_EXPORT(kxfer_flow_wake);

/* job/job.c */
KXFER_EXPORT(kxfer_job_pump);

/* job/target.c */
KXFER_EXPORT(kxfer_target_put);

/* link/cm.c */
KXFER_EXPORT(kxfer_cm_bind_scope);

/* link/cq.c */
KXFER_EXPORT(kxfer_cq_own);
KXFER_EXPORT(kxfer_cq_disown);
KXFER_EXPORT(kxfer_cq_poll);
KXFER_EXPORT(kxfer_cq_look);

/* link/lane.c */
KXFER_EXPORT(kxfer_lane_wc_error);
KXFER_EXPORT(kxfer_lane_post_to_locked);
KXFER_EXPORT(kxfer_lane_post_locked);
KXFER_EXPORT(kxfer_lane_rests);
KXFER_EXPORT(kxfer_lane_stuck);

/* link/link.c */
KXFER_EXPORT(kxfer_link_fail);
KXFER_EXPORT(kxfer_link_is_live);
KXFER_EXPORT(kxfer_link_is_dead);
KXFER_EXPORT(kxfer_link_job_error);
KXFER_EXPORT(kxfer_link_protocol_error);
KXFER_EXPORT(kxfer_link_unuse);
KXFER_EXPORT(kxfer_link_wait_live);

/* link/link_table.c */
KXFER_EXPORT(kxfer_link_dedicate);

/* link/mr.c */
KXFER_EXPORT(kxfer_mr_alloc);
KXFER_EXPORT(kxfer_mr_dereg);
KXFER_EXPORT(kxfer_mr_count);
KXFER_EXPORT(kxfer_mr_register);
KXFER_EXPORT(kxfer_mr_register_bytes);

/* node/charge.c */
#ifdef CONFIG_CGROUP_RDMA
KXFER_EXPORT(kxfer_charge_handle);
#endif

/* node/device.c */
KXFER_EXPORT(kxfer_device_map);
KXFER_EXPORT(kxfer_device_map_mr);

/* node/mapping.c */
KXFER_EXPORT(kxfer_mapping_find);
KXFER_EXPORT(kxfer_mapping_get);
KXFER_EXPORT(kxfer_mapping_put);
KXFER_EXPORT(kxfer_mapping_sync);
KXFER_EXPORT(kxfer_mapping_pieces);

/* node/table.c */
KXFER_EXPORT(kxfer_table_insert);

/* base/addr.c */
KXFER_EXPORT(kxfer_addr_check);
KXFER_EXPORT(kxfer_addr_to_sockaddr);

/* base/fault.c */
KXFER_EXPORT(kxfer_fault_hit);
KXFER_EXPORT(kxfer_fault_key);

/* base/plan.c */
KXFER_EXPORT(kxfer_plan_init);
KXFER_EXPORT(kxfer_plan_next);
KXFER_EXPORT(kxfer_plan_is_word);
