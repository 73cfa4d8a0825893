// SPDX-License-Identifier: MIT
//
// What a job of the session is for. Its address is the job's user_data; it stays until ended().
#pragma once

#include <kxfer/kxfer.h>

namespace kxfer::fi {

class Pending {
  public:
    // Called once for each accepted job, by Domain::progress(), with the domain's lock held.
    virtual void ended(const kxfer_completion& completion) = 0;

    uint64_t user_data() const { return reinterpret_cast<uintptr_t>(this); }

  protected:
    ~Pending() = default;
};

} // namespace kxfer::fi
