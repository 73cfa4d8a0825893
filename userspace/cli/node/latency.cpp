// SPDX-License-Identifier: MIT
#include "cli/node/latency.hpp"

#include <cerrno>
#include <cmath>
#include <numeric>

namespace kxfer::cli {

namespace {

uint64_t growth(uint64_t before, uint64_t now) { return now >= before ? now - before : now; }

uint64_t bucket_begin_ns(size_t bucket) {
    return bucket == 0 ? 0 : uint64_t{4 + bucket % 4} << (8 + bucket / 4);
}

} // namespace

void Latency::add(const kxfer_info_latency& record) {
    failed += record.nr_failed;
    sum_ns += record.sum_ns;
    for (size_t i = 0; i < buckets.size(); i++) buckets.at(i) += record.buckets[i];
}

Latency Latency::since(const Latency& before) const {
    Latency grown;
    grown.failed = growth(before.failed, failed);
    grown.sum_ns = growth(before.sum_ns, sum_ns);
    for (size_t i = 0; i < buckets.size(); i++)
        grown.buckets.at(i) = growth(before.buckets.at(i), buckets.at(i));
    return grown;
}

uint64_t Latency::jobs() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }

std::optional<double> Latency::mean_ns() const {
    if (jobs() == 0) return {};
    return static_cast<double>(sum_ns) / static_cast<double>(jobs());
}

std::optional<double> Latency::quantile_ns(double percent) const {
    if (jobs() == 0) return {};
    const auto rank = static_cast<uint64_t>(std::ceil(static_cast<double>(jobs()) * percent / 100));
    uint64_t passed = 0;
    size_t bucket = 0;
    while (bucket + 1 < buckets.size() && (passed += buckets.at(bucket)) < rank) bucket++;
    const uint64_t end = bucket_end_ns(bucket);
    return static_cast<double>(end ? end : bucket_begin_ns(bucket));
}

uint64_t bucket_end_ns(size_t bucket) {
    return bucket + 1 < KXFER_LATENCY_BUCKETS ? bucket_begin_ns(bucket + 1) : 0;
}

std::vector<uint32_t> counted_ops() {
    return {KXFER_OP_READ,         KXFER_OP_WRITE,     KXFER_OP_NOTIFY,
            KXFER_OP_COMPARE_SWAP, KXFER_OP_FETCH_ADD, KXFER_OP_SEND};
}

const char* op_name(uint32_t op) {
    switch (op) {
    case KXFER_OP_READ:
        return "READ";
    case KXFER_OP_WRITE:
        return "WRITE";
    case KXFER_OP_NOTIFY:
        return "NOTIFY";
    case KXFER_OP_COMPARE_SWAP:
        return "COMPARE_SWAP";
    case KXFER_OP_FETCH_ADD:
        return "FETCH_ADD";
    case KXFER_OP_SEND:
        return "SEND";
    default:
        return "unknown";
    }
}

Expected<std::vector<kxfer_info_latency>> latencies_of(const Session& session) {
    auto records = session.list<kxfer_info_latency>(KXFER_INFO_LATENCIES);
    if (!records && records.error().number == EOPNOTSUPP) return std::vector<kxfer_info_latency>();
    return records;
}

Latency latency_of(const std::vector<kxfer_info_latency>& records, uint64_t link,
                   std::optional<uint32_t> op) {
    Latency all;
    for (const kxfer_info_latency& record : records)
        if (record.link == link && record.op == op.value_or(record.op)) all.add(record);
    return all;
}

} // namespace kxfer::cli
