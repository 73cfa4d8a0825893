// SPDX-License-Identifier: GPL-2.0
/*
 * The structures of the contract are the same for 32-bit and 64-bit callers: each offset and
 * size is written here once and checked by both (layout32.c is this file, built for 32 bits). A
 * change of any of them breaks callers.
 */
#include <stddef.h>

#include <linux/kxfer.h>
#include <linux/kxfer_bench.h>

#include "kselftest_harness.h"

/* Checks the members in turn; an unnamed hole or tail shows as a difference. */
#define MEMBER(type, member, offset)						\
	EXPECT_EQ(offset, offsetof(struct type, member)) {			\
		TH_LOG(#type "." #member);					\
	}
#define SIZE(type, size)	EXPECT_EQ(size, sizeof(struct type))

TEST(layout_of_addr)
{
	MEMBER(kxfer_addr, family, 0);
	MEMBER(kxfer_addr, port, 2);
	MEMBER(kxfer_addr, scope_id, 4);
	MEMBER(kxfer_addr, addr, 8);
	SIZE(kxfer_addr, 24);
}

TEST(layout_of_query)
{
	MEMBER(kxfer_query, size, 0);
	MEMBER(kxfer_query, flags, 4);
	MEMBER(kxfer_query, abi, 8);
	MEMBER(kxfer_query, nr_devices, 12);
	MEMBER(kxfer_query, features, 16);
	MEMBER(kxfer_query, version, 24);
	MEMBER(kxfer_query, max_jobs_per_submit, 56);
	MEMBER(kxfer_query, max_jobs, 60);
	MEMBER(kxfer_query, max_regions, 64);
	MEMBER(kxfer_query, max_exports, 68);
	MEMBER(kxfer_query, max_targets, 72);
	MEMBER(kxfer_query, max_peers, 76);
	MEMBER(kxfer_query, max_listeners, 80);
	MEMBER(kxfer_query, max_events, 84);
	MEMBER(kxfer_query, max_rules, 88);
	MEMBER(kxfer_query, __reserved, 92);
	MEMBER(kxfer_query, max_region_bytes, 96);
	SIZE(kxfer_query, 104);
}

TEST(layout_of_nop)
{
	MEMBER(kxfer_nop, size, 0);
	MEMBER(kxfer_nop, flags, 4);
	SIZE(kxfer_nop, 8);
}

TEST(layout_of_info)
{
	MEMBER(kxfer_info, size, 0);
	MEMBER(kxfer_info, flags, 4);
	MEMBER(kxfer_info, kind, 8);
	MEMBER(kxfer_info, stride, 12);
	MEMBER(kxfer_info, cursor, 16);
	MEMBER(kxfer_info, records, 24);
	MEMBER(kxfer_info, nr, 32);
	MEMBER(kxfer_info, __reserved, 36);
	SIZE(kxfer_info, 40);
}

TEST(layout_of_info_device)
{
	MEMBER(kxfer_info_device, id, 0);
	MEMBER(kxfer_info_device, name, 8);
	MEMBER(kxfer_info_device, flags, 72);
	MEMBER(kxfer_info_device, nr_ports, 76);
	MEMBER(kxfer_info_device, max_send_sge, 80);
	MEMBER(kxfer_info_device, max_sge_rd, 84);
	MEMBER(kxfer_info_device, max_qp_wr, 88);
	MEMBER(kxfer_info_device, max_cqe, 92);
	MEMBER(kxfer_info_device, max_fast_reg_pages, 96);
	MEMBER(kxfer_info_device, max_qp_rd_atom, 100);
	MEMBER(kxfer_info_device, max_qp_init_rd_atom, 104);
	MEMBER(kxfer_info_device, nr_comp_vectors, 108);
	MEMBER(kxfer_info_device, max_msg_bytes, 112);
	MEMBER(kxfer_info_device, nr_links, 120);
	MEMBER(kxfer_info_device, nr_mappings, 124);
	SIZE(kxfer_info_device, 128);
}

TEST(layout_of_info_listener)
{
	MEMBER(kxfer_info_listener, id, 0);
	MEMBER(kxfer_info_listener, addr, 8);
	MEMBER(kxfer_info_listener, flags, 32);
	MEMBER(kxfer_info_listener, active, 36);
	MEMBER(kxfer_info_listener, device, 40);
	MEMBER(kxfer_info_listener, nr_accepted, 104);
	MEMBER(kxfer_info_listener, nr_refused, 112);
	MEMBER(kxfer_info_listener, nr_keys, 120);
	MEMBER(kxfer_info_listener, silence_ms, 124);
	MEMBER(kxfer_info_listener, ack_timeout, 128);
	MEMBER(kxfer_info_listener, __reserved, 132);
	SIZE(kxfer_info_listener, 136);
}

TEST(layout_of_content)
{
	MEMBER(kxfer_content, generation, 0);
	MEMBER(kxfer_content, length, 8);
	MEMBER(kxfer_content, sha256, 16);
	SIZE(kxfer_content, 48);
}

TEST(layout_of_info_export)
{
	MEMBER(kxfer_info_export, id, 0);
	MEMBER(kxfer_info_export, name, 8);
	MEMBER(kxfer_info_export, length, 72);
	MEMBER(kxfer_info_export, rights, 80);
	MEMBER(kxfer_info_export, nr_rules, 84);
	MEMBER(kxfer_info_export, owner_uid, 88);
	MEMBER(kxfer_info_export, owner_pid, 92);
	MEMBER(kxfer_info_export, nr_links, 96);
	MEMBER(kxfer_info_export, nr_grants, 100);
	MEMBER(kxfer_info_export, content, 104);
	MEMBER(kxfer_info_export, cookie, 152);
	SIZE(kxfer_info_export, 160);
}

TEST(layout_of_info_link)
{
	MEMBER(kxfer_info_link, id, 0);
	MEMBER(kxfer_info_link, local, 8);
	MEMBER(kxfer_info_link, remote, 32);
	MEMBER(kxfer_info_link, device, 56);
	MEMBER(kxfer_info_link, flags, 120);
	MEMBER(kxfer_info_link, state, 124);
	MEMBER(kxfer_info_link, error, 128);
	MEMBER(kxfer_info_link, context, 132);
	MEMBER(kxfer_info_link, tos, 136);
	MEMBER(kxfer_info_link, gid_type, 140);
	MEMBER(kxfer_info_link, nr_lanes, 144);
	MEMBER(kxfer_info_link, nr_sessions, 148);
	MEMBER(kxfer_info_link, nr_grants, 152);
	MEMBER(kxfer_info_link, nr_jobs, 156);
	MEMBER(kxfer_info_link, rtt_ns, 160);
	MEMBER(kxfer_info_link, age_ns, 168);
	MEMBER(kxfer_info_link, idle_ns, 176);
	MEMBER(kxfer_info_link, bytes_read, 184);
	MEMBER(kxfer_info_link, bytes_written, 192);
	MEMBER(kxfer_info_link, key, 200);
	MEMBER(kxfer_info_link, sgid, 264);
	MEMBER(kxfer_info_link, dgid, 280);
	MEMBER(kxfer_info_link, silence_ms, 296);
	MEMBER(kxfer_info_link, ack_timeout, 300);
	MEMBER(kxfer_info_link, retry_count, 304);
	MEMBER(kxfer_info_link, in_flight_kib, 308);
	SIZE(kxfer_info_link, 312);
}

TEST(layout_of_info_lane)
{
	MEMBER(kxfer_info_lane, id, 0);
	MEMBER(kxfer_info_lane, link, 8);
	MEMBER(kxfer_info_lane, index, 16);
	MEMBER(kxfer_info_lane, credits, 20);
	MEMBER(kxfer_info_lane, max_credits, 24);
	MEMBER(kxfer_info_lane, nr_queued, 28);
	MEMBER(kxfer_info_lane, nr_posted, 32);
	MEMBER(kxfer_info_lane, max_send_sge, 36);
	MEMBER(kxfer_info_lane, nr_wr, 40);
	MEMBER(kxfer_info_lane, nr_completions, 48);
	MEMBER(kxfer_info_lane, max_inline, 56);
	MEMBER(kxfer_info_lane, path_mtu, 60);
	SIZE(kxfer_info_lane, 64);
}

TEST(layout_of_info_session)
{
	MEMBER(kxfer_info_session, id, 0);
	MEMBER(kxfer_info_session, pid, 8);
	MEMBER(kxfer_info_session, uid, 12);
	MEMBER(kxfer_info_session, nr_regions, 16);
	MEMBER(kxfer_info_session, nr_exports, 20);
	MEMBER(kxfer_info_session, nr_peers, 24);
	MEMBER(kxfer_info_session, nr_targets, 28);
	MEMBER(kxfer_info_session, nr_jobs, 32);
	MEMBER(kxfer_info_session, nr_done, 36);
	MEMBER(kxfer_info_session, pinned_bytes, 40);
	SIZE(kxfer_info_session, 48);
}

TEST(layout_of_info_counter)
{
	MEMBER(kxfer_info_counter, id, 0);
	MEMBER(kxfer_info_counter, name, 8);
	MEMBER(kxfer_info_counter, value, 56);
	SIZE(kxfer_info_counter, 64);
}

TEST(layout_of_info_line)
{
	MEMBER(kxfer_line_event, age_ns, 0);
	MEMBER(kxfer_line_event, link, 8);
	MEMBER(kxfer_line_event, type, 16);
	MEMBER(kxfer_line_event, error, 20);
	MEMBER(kxfer_line_event, nr, 24);
	MEMBER(kxfer_line_event, __reserved, 28);
	SIZE(kxfer_line_event, 32);
	MEMBER(kxfer_info_line, id, 0);
	MEMBER(kxfer_info_line, session, 8);
	MEMBER(kxfer_info_line, link, 16);
	MEMBER(kxfer_info_line, remote, 24);
	MEMBER(kxfer_info_line, peer, 48);
	MEMBER(kxfer_info_line, flags, 52);
	MEMBER(kxfer_info_line, loss_ms, 56);
	MEMBER(kxfer_info_line, nr_waiting, 60);
	MEMBER(kxfer_info_line, nr_events, 64);
	MEMBER(kxfer_info_line, __reserved, 68);
	MEMBER(kxfer_info_line, events, 72);
	SIZE(kxfer_info_line, 584);
}

TEST(layout_of_info_latency)
{
	MEMBER(kxfer_info_latency, id, 0);
	MEMBER(kxfer_info_latency, lane, 8);
	MEMBER(kxfer_info_latency, link, 16);
	MEMBER(kxfer_info_latency, op, 24);
	MEMBER(kxfer_info_latency, __reserved, 28);
	MEMBER(kxfer_info_latency, nr_failed, 32);
	MEMBER(kxfer_info_latency, sum_ns, 40);
	MEMBER(kxfer_info_latency, buckets, 48);
	SIZE(kxfer_info_latency, 688);
}

TEST(layout_of_region_add)
{
	MEMBER(kxfer_region_add, size, 0);
	MEMBER(kxfer_region_add, flags, 4);
	MEMBER(kxfer_region_add, addr, 8);
	MEMBER(kxfer_region_add, length, 16);
	MEMBER(kxfer_region_add, region, 24);
	MEMBER(kxfer_region_add, nr_segments, 28);
	MEMBER(kxfer_region_add, dmabuf_fd, 32);
	MEMBER(kxfer_region_add, __reserved, 36);
	SIZE(kxfer_region_add, 40);
}

TEST(layout_of_id)
{
	MEMBER(kxfer_id, size, 0);
	MEMBER(kxfer_id, flags, 4);
	MEMBER(kxfer_id, id, 8);
	MEMBER(kxfer_id, __reserved, 12);
	SIZE(kxfer_id, 16);
}

TEST(layout_of_rule)
{
	MEMBER(kxfer_rule, match, 0);
	MEMBER(kxfer_rule, rights, 4);
	MEMBER(kxfer_rule, uid, 8);
	MEMBER(kxfer_rule, gid, 12);
	MEMBER(kxfer_rule, prefix_len, 16);
	MEMBER(kxfer_rule, __reserved, 20);
	MEMBER(kxfer_rule, addr, 24);
	MEMBER(kxfer_rule, key, 48);
	SIZE(kxfer_rule, 112);
}

TEST(layout_of_export_add)
{
	MEMBER(kxfer_export_add, size, 0);
	MEMBER(kxfer_export_add, flags, 4);
	MEMBER(kxfer_export_add, region, 8);
	MEMBER(kxfer_export_add, rights, 12);
	MEMBER(kxfer_export_add, offset, 16);
	MEMBER(kxfer_export_add, length, 24);
	MEMBER(kxfer_export_add, name, 32);
	MEMBER(kxfer_export_add, rules, 96);
	MEMBER(kxfer_export_add, nr_rules, 104);
	MEMBER(kxfer_export_add, export_id, 108);
	MEMBER(kxfer_export_add, rule_stride, 112);
	MEMBER(kxfer_export_add, nr_events, 116);
	MEMBER(kxfer_export_add, cookie, 120);
	SIZE(kxfer_export_add, 128);
}

TEST(layout_of_export_set)
{
	MEMBER(kxfer_export_set, size, 0);
	MEMBER(kxfer_export_set, flags, 4);
	MEMBER(kxfer_export_set, export_id, 8);
	MEMBER(kxfer_export_set, __reserved, 12);
	MEMBER(kxfer_export_set, content, 16);
	SIZE(kxfer_export_set, 64);
}

TEST(layout_of_mailbox_add)
{
	MEMBER(kxfer_mailbox_add, size, 0);
	MEMBER(kxfer_mailbox_add, flags, 4);
	MEMBER(kxfer_mailbox_add, name, 8);
	MEMBER(kxfer_mailbox_add, rules, 72);
	MEMBER(kxfer_mailbox_add, nr_rules, 80);
	MEMBER(kxfer_mailbox_add, capacity, 84);
	MEMBER(kxfer_mailbox_add, max_bytes, 88);
	MEMBER(kxfer_mailbox_add, export_id, 92);
	MEMBER(kxfer_mailbox_add, rule_stride, 96);
	MEMBER(kxfer_mailbox_add, message_size, 100);
	MEMBER(kxfer_mailbox_add, cookie, 104);
	SIZE(kxfer_mailbox_add, 112);
}

TEST(layout_of_message)
{
	MEMBER(kxfer_message, time_ns, 0);
	MEMBER(kxfer_message, bytes, 8);
	MEMBER(kxfer_message, flags, 12);
	MEMBER(kxfer_message, immediate, 16);
	MEMBER(kxfer_message, __reserved, 20);
	MEMBER(kxfer_message, peer, 24);
	MEMBER(kxfer_message, uid, 48);
	MEMBER(kxfer_message, gid, 52);
	MEMBER(kxfer_message, word, 56);
	SIZE(kxfer_message, 64);
	EXPECT_EQ(56, KXFER_MESSAGE_SIZE_MIN);
}

TEST(layout_of_listen_add)
{
	MEMBER(kxfer_listen_add, size, 0);
	MEMBER(kxfer_listen_add, flags, 4);
	MEMBER(kxfer_listen_add, addr, 8);
	MEMBER(kxfer_listen_add, listener, 32);
	MEMBER(kxfer_listen_add, keys, 40);
	MEMBER(kxfer_listen_add, nr_keys, 48);
	MEMBER(kxfer_listen_add, silence_ms, 52);
	MEMBER(kxfer_listen_add, ack_timeout, 56);
	MEMBER(kxfer_listen_add, __reserved, 60);
	SIZE(kxfer_listen_add, 64);
}

TEST(layout_of_key_name)
{
	MEMBER(kxfer_key_name, name, 0);
	SIZE(kxfer_key_name, 64);
}

TEST(layout_of_listen_del)
{
	MEMBER(kxfer_listen_del, size, 0);
	MEMBER(kxfer_listen_del, flags, 4);
	MEMBER(kxfer_listen_del, listener, 8);
	SIZE(kxfer_listen_del, 16);
}

TEST(layout_of_peer_open)
{
	MEMBER(kxfer_peer_open, size, 0);
	MEMBER(kxfer_peer_open, flags, 4);
	MEMBER(kxfer_peer_open, remote, 8);
	MEMBER(kxfer_peer_open, local, 32);
	MEMBER(kxfer_peer_open, device, 56);
	MEMBER(kxfer_peer_open, context, 120);
	MEMBER(kxfer_peer_open, tos, 124);
	MEMBER(kxfer_peer_open, timeout_ms, 128);
	MEMBER(kxfer_peer_open, peer, 132);
	MEMBER(kxfer_peer_open, refusal, 136);
	MEMBER(kxfer_peer_open, loss_ms, 140);
	MEMBER(kxfer_peer_open, link, 144);
	MEMBER(kxfer_peer_open, key, 152);
	MEMBER(kxfer_peer_open, via, 216);
	MEMBER(kxfer_peer_open, nr_via, 224);
	MEMBER(kxfer_peer_open, silence_ms, 228);
	MEMBER(kxfer_peer_open, ack_timeout, 232);
	MEMBER(kxfer_peer_open, retry_count, 236);
	MEMBER(kxfer_peer_open, in_flight_kib, 240);
	MEMBER(kxfer_peer_open, __reserved, 244);
	SIZE(kxfer_peer_open, 248);
}

TEST(layout_of_path)
{
	MEMBER(kxfer_path, remote, 0);
	MEMBER(kxfer_path, local, 24);
	MEMBER(kxfer_path, device, 48);
	SIZE(kxfer_path, 112);
}

TEST(layout_of_peer_export)
{
	MEMBER(kxfer_peer_export, name, 0);
	MEMBER(kxfer_peer_export, length, 64);
	MEMBER(kxfer_peer_export, rights, 72);
	MEMBER(kxfer_peer_export, __reserved, 76);
	MEMBER(kxfer_peer_export, content, 80);
	SIZE(kxfer_peer_export, 128);
}

TEST(layout_of_peer_list)
{
	MEMBER(kxfer_peer_list, size, 0);
	MEMBER(kxfer_peer_list, flags, 4);
	MEMBER(kxfer_peer_list, peer, 8);
	MEMBER(kxfer_peer_list, timeout_ms, 12);
	MEMBER(kxfer_peer_list, cursor, 16);
	MEMBER(kxfer_peer_list, exports, 24);
	MEMBER(kxfer_peer_list, nr, 32);
	MEMBER(kxfer_peer_list, __reserved, 36);
	SIZE(kxfer_peer_list, 40);
}

TEST(layout_of_target_open)
{
	MEMBER(kxfer_target_open, size, 0);
	MEMBER(kxfer_target_open, flags, 4);
	MEMBER(kxfer_target_open, peer, 8);
	MEMBER(kxfer_target_open, rights, 12);
	MEMBER(kxfer_target_open, name, 16);
	MEMBER(kxfer_target_open, timeout_ms, 80);
	MEMBER(kxfer_target_open, target, 84);
	MEMBER(kxfer_target_open, granted, 88);
	MEMBER(kxfer_target_open, nr_keys, 92);
	MEMBER(kxfer_target_open, length, 96);
	MEMBER(kxfer_target_open, content, 104);
	MEMBER(kxfer_target_open, cookie, 152);
	MEMBER(kxfer_target_open, word, 160);
	MEMBER(kxfer_target_open, node, 168);
	MEMBER(kxfer_target_open, export_id, 176);
	SIZE(kxfer_target_open, 184);
}

TEST(layout_of_target_info)
{
	MEMBER(kxfer_target_info, size, 0);
	MEMBER(kxfer_target_info, flags, 4);
	MEMBER(kxfer_target_info, target, 8);
	MEMBER(kxfer_target_info, timeout_ms, 12);
	MEMBER(kxfer_target_info, min_generation, 16);
	MEMBER(kxfer_target_info, length, 24);
	MEMBER(kxfer_target_info, granted, 32);
	MEMBER(kxfer_target_info, __reserved, 36);
	MEMBER(kxfer_target_info, content, 40);
	MEMBER(kxfer_target_info, cookie, 88);
	SIZE(kxfer_target_info, 96);
}

TEST(layout_of_job)
{
	MEMBER(kxfer_job, op, 0);
	MEMBER(kxfer_job, flags, 4);
	MEMBER(kxfer_job, region, 8);
	MEMBER(kxfer_job, target, 12);
	MEMBER(kxfer_job, region_offset, 16);
	MEMBER(kxfer_job, target_offset, 24);
	MEMBER(kxfer_job, length, 32);
	MEMBER(kxfer_job, user_data, 40);
	MEMBER(kxfer_job, deadline_ns, 48);
	MEMBER(kxfer_job, cookie, 56);
	MEMBER(kxfer_job, compare_add, 64);
	MEMBER(kxfer_job, swap, 72);
	SIZE(kxfer_job, 80);
}

TEST(layout_of_completion)
{
	MEMBER(kxfer_completion, user_data, 0);
	MEMBER(kxfer_completion, bytes, 8);
	MEMBER(kxfer_completion, status, 16);
	MEMBER(kxfer_completion, op, 20);
	MEMBER(kxfer_completion, submitted_ns, 24);
	MEMBER(kxfer_completion, completed_ns, 32);
	SIZE(kxfer_completion, 40);
}

TEST(layout_of_uring_job)
{
	MEMBER(kxfer_uring_job, job, 0);
	/* The command area of an SQE of 128 bytes. */
	SIZE(kxfer_uring_job, 80);
	EXPECT_EQ(0xbd50, KXFER_URING_CMD_JOB);
}

TEST(layout_of_submit)
{
	MEMBER(kxfer_submit, size, 0);
	MEMBER(kxfer_submit, flags, 4);
	MEMBER(kxfer_submit, jobs, 8);
	MEMBER(kxfer_submit, nr_jobs, 16);
	MEMBER(kxfer_submit, stride, 20);
	MEMBER(kxfer_submit, completions, 24);
	MEMBER(kxfer_submit, nr_completions, 32);
	MEMBER(kxfer_submit, wait, 36);
	MEMBER(kxfer_submit, deadline_ns, 40);
	MEMBER(kxfer_submit, accepted, 48);
	MEMBER(kxfer_submit, reaped, 52);
	MEMBER(kxfer_submit, error, 56);
	MEMBER(kxfer_submit, __reserved, 60);
	SIZE(kxfer_submit, 64);
}

TEST(layout_of_reap)
{
	MEMBER(kxfer_reap, size, 0);
	MEMBER(kxfer_reap, flags, 4);
	MEMBER(kxfer_reap, completions, 8);
	MEMBER(kxfer_reap, nr, 16);
	MEMBER(kxfer_reap, wait, 20);
	MEMBER(kxfer_reap, deadline_ns, 24);
	MEMBER(kxfer_reap, reaped, 32);
	MEMBER(kxfer_reap, __reserved, 36);
	SIZE(kxfer_reap, 40);
}

TEST(layout_of_cancel)
{
	MEMBER(kxfer_cancel, size, 0);
	MEMBER(kxfer_cancel, flags, 4);
	MEMBER(kxfer_cancel, user_data, 8);
	MEMBER(kxfer_cancel, cancelled, 16);
	MEMBER(kxfer_cancel, __reserved, 20);
	SIZE(kxfer_cancel, 24);
}

TEST(layout_of_event)
{
	MEMBER(kxfer_event, type, 0);
	MEMBER(kxfer_event, export_id, 4);
	MEMBER(kxfer_event, cookie, 8);
	MEMBER(kxfer_event, time_ns, 16);
	MEMBER(kxfer_event, peer, 24);
	MEMBER(kxfer_event, uid, 48);
	MEMBER(kxfer_event, gid, 52);
	SIZE(kxfer_event, 56);
}

TEST(layout_of_event_reap)
{
	MEMBER(kxfer_event_reap, size, 0);
	MEMBER(kxfer_event_reap, flags, 4);
	MEMBER(kxfer_event_reap, events, 8);
	MEMBER(kxfer_event_reap, nr, 16);
	MEMBER(kxfer_event_reap, wait, 20);
	MEMBER(kxfer_event_reap, deadline_ns, 24);
	SIZE(kxfer_event_reap, 32);
}

TEST(layout_of_cq_ring)
{
	MEMBER(kxfer_cq_ring, size, 0);
	MEMBER(kxfer_cq_ring, flags, 4);
	MEMBER(kxfer_cq_ring, entries, 8);
	MEMBER(kxfer_cq_ring, eventfd, 12);
	MEMBER(kxfer_cq_ring, offset, 16);
	MEMBER(kxfer_cq_ring, bytes, 24);
	SIZE(kxfer_cq_ring, 32);
}

TEST(layout_of_sq_ring)
{
	MEMBER(kxfer_sq_ring, size, 0);
	MEMBER(kxfer_sq_ring, flags, 4);
	MEMBER(kxfer_sq_ring, entries, 8);
	MEMBER(kxfer_sq_ring, __reserved, 12);
	MEMBER(kxfer_sq_ring, offset, 16);
	MEMBER(kxfer_sq_ring, bytes, 24);
	SIZE(kxfer_sq_ring, 32);
	MEMBER(kxfer_sq, tail, 0);
	MEMBER(kxfer_sq, flags, 4);
	MEMBER(kxfer_sq, deadline_ns, 8);
	MEMBER(kxfer_sq, __reserved, 16);
	MEMBER(kxfer_sq, head, 64);
	MEMBER(kxfer_sq, error, 68);
	MEMBER(kxfer_sq, mask, 72);
	MEMBER(kxfer_sq, entries, 76);
	MEMBER(kxfer_sq, __reserved1, 80);
	SIZE(kxfer_sq, 128);
}

TEST(layout_of_ring)
{
	MEMBER(kxfer_ring, head, 0);
	MEMBER(kxfer_ring, __reserved, 4);
	MEMBER(kxfer_ring, tail, 64);
	MEMBER(kxfer_ring, __reserved1, 68);
	MEMBER(kxfer_ring, mask, 128);
	MEMBER(kxfer_ring, entries, 132);
	MEMBER(kxfer_ring, __reserved2, 136);
	SIZE(kxfer_ring, 192);
}

TEST(layout_of_bench)
{
	MEMBER(kxfer_bench, size, 0);
	MEMBER(kxfer_bench, flags, 4);
	MEMBER(kxfer_bench, op, 8);
	MEMBER(kxfer_bench, region, 12);
	MEMBER(kxfer_bench, target, 16);
	MEMBER(kxfer_bench, depth, 20);
	MEMBER(kxfer_bench, list, 24);
	MEMBER(kxfer_bench, signal, 28);
	MEMBER(kxfer_bench, region_offset, 32);
	MEMBER(kxfer_bench, target_offset, 40);
	MEMBER(kxfer_bench, length, 48);
	MEMBER(kxfer_bench, stride, 56);
	MEMBER(kxfer_bench, warm_up, 64);
	MEMBER(kxfer_bench, count, 68);
	MEMBER(kxfer_bench, time_limit_ms, 72);
	MEMBER(kxfer_bench, nr_samples, 76);
	MEMBER(kxfer_bench, samples, 80);
	MEMBER(kxfer_bench, operations, 88);
	MEMBER(kxfer_bench, nr_wr, 92);
	MEMBER(kxfer_bench, total_ns, 96);
	MEMBER(kxfer_bench, memory, 104);
	MEMBER(kxfer_bench, nr_buckets, 108);
	MEMBER(kxfer_bench, histogram, 112);
	MEMBER(kxfer_bench, words, 120);
	MEMBER(kxfer_bench, dedicated, 128);
	MEMBER(kxfer_bench, invalidate, 132);
	MEMBER(kxfer_bench, interval_ps, 136);
	MEMBER(kxfer_bench, late_ns, 144);
	MEMBER(kxfer_bench, posted_histogram, 152);
	MEMBER(kxfer_bench, echo_offset, 160);
	MEMBER(kxfer_bench, echo, 168);
	MEMBER(kxfer_bench, __reserved, 172);
	SIZE(kxfer_bench, 176);
}

TEST(layout_of_dedicated_open)
{
	MEMBER(kxfer_dedicated_open, size, 0);
	MEMBER(kxfer_dedicated_open, flags, 4);
	MEMBER(kxfer_dedicated_open, remote, 8);
	MEMBER(kxfer_dedicated_open, local, 32);
	MEMBER(kxfer_dedicated_open, device, 56);
	MEMBER(kxfer_dedicated_open, context, 120);
	MEMBER(kxfer_dedicated_open, timeout_ms, 124);
	MEMBER(kxfer_dedicated_open, length, 128);
	MEMBER(kxfer_dedicated_open, op, 136);
	MEMBER(kxfer_dedicated_open, receives, 140);
	MEMBER(kxfer_dedicated_open, slots, 144);
	MEMBER(kxfer_dedicated_open, bytes, 148);
	MEMBER(kxfer_dedicated_open, dedicated, 152);
	MEMBER(kxfer_dedicated_open, refusal, 156);
	MEMBER(kxfer_dedicated_open, link, 160);
	MEMBER(kxfer_dedicated_open, transport, 168);
	MEMBER(kxfer_dedicated_open, qkey, 172);
	MEMBER(kxfer_dedicated_open, mtu, 176);
	MEMBER(kxfer_dedicated_open, __reserved, 180);
	SIZE(kxfer_dedicated_open, 184);
}

TEST(layout_of_dedicated_status)
{
	MEMBER(kxfer_dedicated_status, size, 0);
	MEMBER(kxfer_dedicated_status, flags, 4);
	MEMBER(kxfer_dedicated_status, dedicated, 8);
	MEMBER(kxfer_dedicated_status, __reserved, 12);
	MEMBER(kxfer_dedicated_status, sent, 16);
	MEMBER(kxfer_dedicated_status, received, 24);
	MEMBER(kxfer_dedicated_status, wrong, 32);
	SIZE(kxfer_dedicated_status, 40);
}

TEST(numbers_of_calls)
{
	EXPECT_EQ(0xbd00, KXFER_QUERY);
	EXPECT_EQ(0xbd01, KXFER_NOP);
	EXPECT_EQ(0xbd02, KXFER_INFO);
	EXPECT_EQ(0xbd10, KXFER_REGION_ADD);
	EXPECT_EQ(0xbd11, KXFER_REGION_DEL);
	EXPECT_EQ(0xbd12, KXFER_EXPORT_ADD);
	EXPECT_EQ(0xbd13, KXFER_EXPORT_DEL);
	EXPECT_EQ(0xbd14, KXFER_EXPORT_SET);
	EXPECT_EQ(0xbd15, KXFER_MAILBOX_ADD);
	EXPECT_EQ(0xbd20, KXFER_LISTEN_ADD);
	EXPECT_EQ(0xbd21, KXFER_LISTEN_DEL);
	EXPECT_EQ(0xbd22, KXFER_PEER_OPEN);
	EXPECT_EQ(0xbd23, KXFER_PEER_CLOSE);
	EXPECT_EQ(0xbd24, KXFER_PEER_LIST);
	EXPECT_EQ(0xbd28, KXFER_TARGET_OPEN);
	EXPECT_EQ(0xbd29, KXFER_TARGET_CLOSE);
	EXPECT_EQ(0xbd2a, KXFER_TARGET_INFO);
	EXPECT_EQ(0xbd30, KXFER_SUBMIT);
	EXPECT_EQ(0xbd31, KXFER_REAP);
	EXPECT_EQ(0xbd32, KXFER_CANCEL);
	EXPECT_EQ(0xbd33, KXFER_EVENT_REAP);
	EXPECT_EQ(0xbd34, KXFER_CQ_RING);
	EXPECT_EQ(0xbd35, KXFER_SQ_RING);
	EXPECT_EQ(0xbd36, KXFER_ENTER);
	EXPECT_EQ(0xbd40, KXFER_BENCH);
	EXPECT_EQ(0xbd41, KXFER_DEDICATED_OPEN);
	EXPECT_EQ(0xbd42, KXFER_DEDICATED_CLOSE);
	EXPECT_EQ(0xbd43, KXFER_DEDICATED_STATUS);
}

TEST_HARNESS_MAIN
