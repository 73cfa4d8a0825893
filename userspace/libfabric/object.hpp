// SPDX-License-Identifier: MIT
//
// The objects of libfabric are C structures that begin with a struct fid, and calls hand pointers to
// them back. An object of ours derives from such a structure (its `Base`), so the way back is a cast.
//
// No exception leaves a call: what opens an object runs in guarded(), and what moves data allocates
// with std::nothrow or lets the process end, as it does elsewhere when memory for an object of some
// hundred bytes is gone.
#pragma once

#include <new>
#include <type_traits>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

namespace kxfer::fi {

template <typename Object, typename Fid> Object& object_of(Fid* handle) {
    if constexpr (std::is_same_v<Fid, struct ::fid>)
        return static_cast<Object&>(*reinterpret_cast<typename Object::Base*>(handle));
    else
        return static_cast<Object&>(*handle);
}

template <typename Work> int guarded(Work&& work) noexcept {
    try {
        return work();
    } catch (const std::bad_alloc&) {
        return -FI_ENOMEM;
    }
}

inline int no_bind(struct ::fid*, struct ::fid*, uint64_t) { return -FI_ENOSYS; }
inline int no_control(struct ::fid*, int, void*) { return -FI_ENOSYS; }
inline int no_ops_open(struct ::fid*, const char*, uint64_t, void**, void*) { return -FI_ENOSYS; }

// The operations that each object has; close, bind and control are its own.
inline fi_ops make_ops(int (*close)(struct ::fid*),
                       int (*bind)(struct ::fid*, struct ::fid*, uint64_t) = no_bind,
                       int (*control)(struct ::fid*, int, void*) = no_control) {
    fi_ops ops{};
    ops.size = sizeof(ops);
    ops.close = close;
    ops.bind = bind;
    ops.control = control;
    ops.ops_open = no_ops_open;
    return ops;
}

} // namespace kxfer::fi
