// SPDX-License-Identifier: MIT
//
// What a domain looks after beside its jobs: an endpoint, active or passive. Called with the domain's lock
// held.
#pragma once

namespace kxfer::fi {

class Member {
  public:
    // At the end of Domain::progress(): hands in what waits.
    virtual void go_on() = 0;

    // Each second: asks peers whether they are there.
    virtual void look_after() = 0;

  protected:
    ~Member() = default;
};

} // namespace kxfer::fi
