// SPDX-License-Identifier: MIT
//
// Memory that was registered: a region, and if peers may reach it an export "fi.m.DOMAIN.KEY", whose
// cookie is the address of the first byte. The domain's number comes with its mailboxes, so a key need
// not be unique on the node, and the program may choose it.
//
// fi_close() is a fence: after it no peer reaches the memory. It is refused (-FI_EBUSY) while a receive or a
// send that names the memory has not ended.
#pragma once

#include <memory>

#include <rdma/fi_domain.h>

#include "libfabric/domain.hpp"
#include "libfabric/registration.hpp"

namespace kxfer::fi {

class Mr : public fid_mr {
  public:
    using Base = fid_mr;

    static fi_ops_mr make_registration_ops();

    explicit Mr(Domain& domain) : Base{}, domain_(domain) {}

    const std::shared_ptr<const Registration>& registration() const { return registration_; }

  private:
    static int close(struct ::fid* handle);
    static int bind(struct ::fid* handle, struct ::fid* other, uint64_t flags);
    static int control(struct ::fid* handle, int command, void* argument);
    static int add(struct ::fid* domain, const void* at, size_t length, uint64_t access, uint64_t offset,
                   uint64_t key, uint64_t flags, fid_mr** mr, void* context);
    static int add_vector(struct ::fid* domain, const iovec* iov, size_t count, uint64_t access,
                          uint64_t offset, uint64_t key, uint64_t flags, fid_mr** mr, void* context);
    static int add_source(Domain& domain, const Source& source, uint64_t access, uint64_t key, fid_mr** mr,
                          void* context);
    static int add_by_attr(struct ::fid* domain, const fi_mr_attr* attr, uint64_t flags, fid_mr** mr);

    int start(const Source& source, uint64_t access, uint64_t key);

    Domain& domain_;
    std::shared_ptr<const Registration> registration_;
    uint32_t export_ = 0;
};

} // namespace kxfer::fi
