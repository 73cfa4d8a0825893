// SPDX-License-Identifier: MIT
//
// An address vector: the addresses of peers by number. FI_AV_MAP and FI_AV_TABLE are the same, a
// fi_addr_t is an index. The domain's lock is its lock.
#pragma once

#include <atomic>
#include <unordered_map>
#include <vector>

#include <rdma/fi_domain.h>

#include "libfabric/address.hpp"

namespace kxfer::fi {

class Domain;
class Eq;

class Av : public fid_av {
  public:
    using Base = fid_av;

    // fi_ops_domain.av_open
    static int open(fid_domain* domain, fi_av_attr* attr, fid_av** av, void* context);

    explicit Av(Domain& domain) : Base{}, domain_(domain) {}

    // NULL: no such number. The pointer is good until the next insertion.
    const Address* find(fi_addr_t number) const;
    // FI_ADDR_NOTAVAIL: not in here.
    fi_addr_t number_of(const Address& address) const;

    std::atomic<unsigned> users{0}; // endpoints that are bound to it

  private:
    struct Place {
        Address address;
        bool used;
    };

    static int close(struct ::fid* handle);
    static int bind(struct ::fid* handle, struct ::fid* other, uint64_t flags);
    static int insert(fid_av* handle, const void* addresses, size_t count, fi_addr_t* numbers, uint64_t flags,
                      void* context);
    static int insert_service(fid_av* handle, const char* node, const char* service, fi_addr_t* number,
                              uint64_t flags, void* context);
    static int insert_range(fid_av* handle, const char* node, size_t nr_nodes, const char* service,
                            size_t nr_services, fi_addr_t* numbers, uint64_t flags, void* context);
    static int remove(fid_av* handle, fi_addr_t* numbers, size_t count, uint64_t flags);
    static int lookup(fid_av* handle, fi_addr_t number, void* address, size_t* length);
    static const char* text(fid_av* handle, const void* address, char* to, size_t* length);
    static fi_ops_av make_av_ops();

    fi_addr_t add(const Address& address);
    void drop(fi_addr_t number);
    int report(size_t added, void* context);

    Domain& domain_;
    Eq* eq_ = nullptr;
    bool by_event_ = false;
    std::vector<Place> places_;
    std::vector<fi_addr_t> free_;
    size_t nr_repeated_ = 0; // addresses that were in already when they were added
    std::unordered_map<Address, fi_addr_t, HashAddress, SameAddress> numbers_;
};

} // namespace kxfer::fi
