// SPDX-License-Identifier: MIT
//
// Structures that programs hand to the library, or it fills for them, as programs of this
// soname were built with them. The functions fill in @size and take arrays to have the
// stride that they were built with, so a structure that grew would be read and written
// behind the end of an old program's. The module takes both sizes; this library takes one.
//
// If one of these has grown, the size here is not to be changed alone: either SOVERSION
// (CMakeLists.txt) goes up with it, or each function that takes it gets a second version in
// libkxfer.map, beside one that goes on with the old size. Records of kxfer_session_info()
// are not among them: their size is the caller's word.

#include <kxfer/kxfer.h>

static_assert(sizeof(kxfer_addr) == 24);
static_assert(sizeof(kxfer_completion) == 40);
static_assert(sizeof(kxfer_event) == 56);
static_assert(sizeof(kxfer_export_add) == 120);
static_assert(sizeof(kxfer_job) == 80);
static_assert(sizeof(kxfer_mailbox_add) == 104);
static_assert(sizeof(kxfer_peer_export) == 128);
static_assert(sizeof(kxfer_peer_open) == 216);
static_assert(sizeof(kxfer_query) == 104);
static_assert(sizeof(kxfer_rule) == 112);
static_assert(sizeof(kxfer_submit) == 64);
static_assert(sizeof(kxfer_target_info) == 88);
static_assert(sizeof(kxfer_target_open) == 152);
