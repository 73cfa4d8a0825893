// SPDX-License-Identifier: MIT
//
// What a failed operation reports: `err` is libfabric's, `prov_errno` the errno of the module, and
// words_of() says what the latter means here (fi_cq_strerror, fi_eq_strerror).
#pragma once

namespace kxfer::fi {

// What met the failure.
enum class During {
    message, // to or from a mailbox
    memory,  // of a peer, by a key
};

// A negative errno of the module, or of this library, as a positive one of libfabric.
int error_of(int status, During during);

const char* words_of(int prov_errno);

} // namespace kxfer::fi
