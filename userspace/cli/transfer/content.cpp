// SPDX-License-Identifier: MIT
#include "cli/transfer/content.hpp"

namespace kxfer::cli {

Record record_of(const Transferred& transferred) {
    const double seconds = static_cast<double>(transferred.took_ns + 1) / 1e9;
    return Record()
        .add("file", transferred.file)
        .add("remote", transferred.remote.text())
        .add("offset", Bytes{transferred.offset},
             transferred.offset == 0 ? Show::json_only : Show::everywhere)
        .add("length", Bytes{transferred.length})
        .add("sha256", hex(transferred.sha256))
        .add("verified", transferred.verified)
        .add("generation", transferred.generation)
        .add("resumed", Bytes{transferred.resumed},
             transferred.resumed == 0 ? Show::json_only : Show::everywhere)
        .add("breaks", transferred.breaks, transferred.breaks == 0 ? Show::json_only : Show::everywhere)
        .add("time", Nanoseconds{static_cast<double>(transferred.took_ns)})
        .add("rate", BytesPerSecond{static_cast<double>(transferred.length - transferred.resumed) / seconds});
}

} // namespace kxfer::cli
