// SPDX-License-Identifier: MIT
//
// libkxfer-fi.so: libfabric's provider "kxfer". libfabric loads it from FI_PROVIDER_PATH, or from its
// own folder of providers, and calls fi_prov_ini().
#include "libfabric/fabric.hpp"
#include "libfabric/info.hpp"
#include "libfabric/parameters.hpp"

#ifndef EXTERNALLY_VISIBLE
#define EXTERNALLY_VISIBLE externally_visible
#endif

namespace kxfer::fi {

static void clean_up() {}

fi_provider provider = [] {
    fi_provider made{};
    made.version = FI_VERSION(KXFER_VERSION_MAJOR, KXFER_VERSION_MINOR);
    made.name = fabric_name;
    made.getinfo = get_info;
    made.fabric = Fabric::open;
    made.cleanup = clean_up;
    return made;
}();

} // namespace kxfer::fi

// A provider must not be of an older interface than its caller's; the interface is that of the
// library that has loaded it.
extern "C" FI_EXT_INI {
    kxfer::fi::provider.fi_version = fi_version();
    kxfer::fi::read_parameters(kxfer::fi::provider);
    return &kxfer::fi::provider;
}
