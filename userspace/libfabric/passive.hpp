// SPDX-License-Identifier: MIT
//
// A passive endpoint: a mailbox for requests for connections, in a domain of its own, which the event queue
// that is bound to it looks after (Eq::watch()). A request becomes an event FI_CONNREQ, whose fi_info has its
// handle; an endpoint that is opened with that fi_info answers it (Connection::accept()), or reject() does.
//
// Nothing that a request says is believed but as what it says. Requests that wait for the program are
// bounded, by FI_BACKLOG; further ones are dropped without an answer, and those who have sent them give up in
// time. Closing the endpoint drops those that wait: their senders see that the mailbox is gone.
#pragma once

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>

#include "libfabric/domain.hpp"
#include "libfabric/mailbox.hpp"
#include "libfabric/member.hpp"
#include "libfabric/pool.hpp"

namespace kxfer::fi {

class Eq;
class Fabric;

class Passive final : public fid_pep, public Member, public Mailbox::Reader {
  public:
    using Base = fid_pep;

    // fi_ops_fabric.passive_ep
    static int open(fid_fabric* fabric, fi_info* info, fid_pep** passive, void* context);

    Passive(Fabric& fabric, fi_info* info);
    ~Passive();

    // Gives its address to an active endpoint. -FI_EBUSY: it listens there.
    int give_address(Address& address);

    void go_on() override { mailbox_.go_on(); }
    void look_after() override {}
    void take(const uint8_t* bytes, size_t length, uint64_t word) override;

  private:
    static int close(struct ::fid* handle);
    static int bind(struct ::fid* handle, struct ::fid* other, uint64_t flags);
    static int control(struct ::fid* handle, int command, void* argument);
    static int get_option(fid_t handle, int level, int name, void* value, size_t* length);
    static int set_name(fid_t handle, void* address, size_t length);
    static int get_name(fid_t handle, void* address, size_t* length);
    static int listen(fid_pep* handle);
    static int reject(fid_pep* handle, fid_t request, const void* data, size_t length);
    static fi_ops_ep make_ep_ops();
    static fi_ops_cm make_cm_ops();

    int make_mailbox();
    int start_listening();
    int answer_no(fid_t request, const void* data, size_t length);

    Fabric& fabric_;
    fi_info* const info_;
    Domain domain_;
    Pool pool_;
    Mailbox mailbox_;
    Address address_{};
    Eq* eq_ = nullptr;
    bool listens_ = false;
    size_t backlog_ = 128;
    unsigned notes_ = 0; // in flight
};

} // namespace kxfer::fi
