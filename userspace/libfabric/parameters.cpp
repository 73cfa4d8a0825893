// SPDX-License-Identifier: MIT
#include "libfabric/parameters.hpp"

#include <kxfer/kxfer.h>

namespace kxfer::fi {

namespace {

Parameters current;

std::string text_of(fi_provider& provider, const char* name) {
    char* text = nullptr;
    return fi_param_get_str(&provider, name, &text) == 0 && text ? text : "";
}

} // namespace

const Parameters& parameters() { return current; }

void read_parameters(fi_provider& provider) {
    fi_param_define(&provider, "addr", FI_PARAM_STRING,
                    "Own address to use, one that kxfer listens on (default: all of them)");
    fi_param_define(&provider, "port", FI_PARAM_INT, "Port of the kxfer listeners of all nodes (default: %d)",
                    KXFER_PORT);
    fi_param_define(&provider, "key", FI_PARAM_STRING,
                    "Name of the key that the kxfer listeners want (kxfer key add; default: none)");
    fi_param_define(&provider, "any_user", FI_PARAM_BOOL,
                    "Let peers of other users reach endpoints and memory (default: no)");
    fi_param_define(&provider, "read_from", FI_PARAM_SIZE_T,
                    "Messages of so many bytes or more are READ by their receiver (default: %d)", 64 * 1024);
    fi_param_define(&provider, "connect_s", FI_PARAM_INT,
                    "Seconds for which an endpoint waits until its connection is made (default: %d)", 60);
    int port = 0, any_user = 0, connect_s = 0;
    size_t read_from = current.read_from;
    current.address = text_of(provider, "addr");
    current.key = text_of(provider, "key");
    if (fi_param_get_int(&provider, "port", &port) == 0 && port > 0 && port <= UINT16_MAX)
        current.port = static_cast<uint16_t>(port);
    if (fi_param_get_int(&provider, "connect_s", &connect_s) == 0 && connect_s > 0)
        current.connect_s = static_cast<uint64_t>(connect_s);
    if (fi_param_get_bool(&provider, "any_user", &any_user) == 0) current.any_user = any_user != 0;
    if (fi_param_get_size_t(&provider, "read_from", &read_from) == 0) current.read_from = read_from;
}

} // namespace kxfer::fi
