// SPDX-License-Identifier: MIT
//
// The sizes of the structures that programs of this soname were built with, and hand to the
// library or have it fill. The library's functions fill in @size and assume the stride that
// the library was built with. If a structure grew, they would read and write past the end of
// an old program's. The module takes both sizes; this library takes one.
//
// If one of these has grown, do not change the size here alone: either SOVERSION
// (CMakeLists.txt) goes up with it, or each function that takes it gets a second version in
// libkxfer.map, next to one that keeps the old size. Records of kxfer_session_info() are not
// listed: the caller passes their size.

#include <kxfer/kxfer.h>

static_assert(sizeof(kxfer_addr) == 24);
static_assert(sizeof(kxfer_completion) == 40);
static_assert(sizeof(kxfer_event) == 56);
static_assert(sizeof(kxfer_export_add) == 128);
static_assert(sizeof(kxfer_job) == 80);
static_assert(sizeof(kxfer_listen_add) == 64);
static_assert(sizeof(kxfer_mailbox_add) == 112);
static_assert(sizeof(kxfer_message) == 64);
static_assert(sizeof(kxfer_peer_export) == 128);
static_assert(sizeof(kxfer_peer_open) == 248);
static_assert(sizeof(kxfer_path) == 112);
static_assert(sizeof(kxfer_query) == 104);
static_assert(sizeof(kxfer_rule) == 112);
static_assert(sizeof(kxfer_submit) == 64);
static_assert(sizeof(kxfer_target_info) == 96);
static_assert(sizeof(kxfer_target_open) == 184);
