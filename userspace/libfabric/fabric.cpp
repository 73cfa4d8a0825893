// SPDX-License-Identifier: MIT
#include "libfabric/fabric.hpp"

#include <cstring>

#include "libfabric/counter.hpp"
#include "libfabric/cq.hpp"
#include "libfabric/domain.hpp"
#include "libfabric/eq.hpp"
#include "libfabric/info.hpp"
#include "libfabric/object.hpp"
#include "libfabric/passive.hpp"

namespace kxfer::fi {

namespace {

int no_wait_open(fid_fabric*, fi_wait_attr*, fid_wait**) { return -FI_ENOSYS; }

// 0: the caller may sleep on the descriptors of all; -FI_EAGAIN: one of them has something.
int try_wait(fid_fabric*, struct ::fid** handles, int count) {
    for (int i = 0; i < count; i++) {
        int ret = -FI_EINVAL;
        if (handles[i]->fclass == FI_CLASS_CQ) ret = object_of<Cq>(handles[i]).try_wait();
        if (handles[i]->fclass == FI_CLASS_CNTR) ret = object_of<Counter>(handles[i]).try_wait();
        if (handles[i]->fclass == FI_CLASS_EQ) ret = object_of<Eq>(handles[i]).try_wait();
        if (ret != 0) return ret;
    }
    return 0;
}

fi_ops_fabric make_fabric_ops() {
    fi_ops_fabric ops{};
    ops.size = sizeof(ops);
    ops.domain = Domain::open;
    ops.passive_ep = Passive::open;
    ops.eq_open = Eq::open;
    ops.wait_open = no_wait_open;
    ops.trywait = try_wait;
    return ops;
}

} // namespace

int Fabric::open(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
    static fi_ops ops = make_ops(close);
    static fi_ops_fabric fabric_ops = make_fabric_ops();
    if (attr->name && strcmp(attr->name, fabric_name) != 0) return -FI_ENODATA;
    return guarded([&] {
        auto* made = new Fabric();
        made->fid.fclass = FI_CLASS_FABRIC;
        made->fid.context = context;
        made->fid.ops = &ops;
        made->Base::ops = &fabric_ops;
        made->api_version = attr->api_version;
        *fabric = made;
        return 0;
    });
}

int Fabric::close(struct ::fid* handle) {
    Fabric& self = object_of<Fabric>(handle);
    if (self.users > 0) return -FI_EBUSY;
    delete &self;
    return 0;
}

} // namespace kxfer::fi
