// SPDX-License-Identifier: MIT
//
// With h = 2^(precision_bits - 1): a value of `width` bits above precision_bits
// loses its lowest (width - precision_bits) bits; what remains lies in [h, 2h)
// and selects one of the h buckets of its power of two. The first two groups
// hold the exact values.

#include "engine/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kxfer::bench {

namespace {

constexpr unsigned half = 1U << (Histogram::precision_bits - 1);

uint64_t bucket_middle(unsigned bucket) {
    const uint64_t first = Histogram::bucket_first(bucket);
    return first + (Histogram::bucket_last(bucket) - first) / 2;
}

} // namespace

unsigned Histogram::bucket_of(uint64_t value) {
    const unsigned width = std::bit_width(value);

    if (width <= precision_bits) return static_cast<unsigned>(value);
    const unsigned shift = width - precision_bits;
    return shift * half + static_cast<unsigned>(value >> shift);
}

uint64_t Histogram::bucket_first(unsigned bucket) {
    if (bucket < 2 * half) return bucket;
    const unsigned shift = bucket / half - 1;
    return static_cast<uint64_t>(bucket - shift * half) << shift;
}

uint64_t Histogram::bucket_last(unsigned bucket) {
    return bucket + 1 == nr_buckets() ? UINT64_MAX : bucket_first(bucket + 1) - 1;
}

unsigned Histogram::nr_buckets() { return bucket_of(UINT64_MAX) + 1; }

Histogram::Histogram() : buckets_(nr_buckets()) {}

void Histogram::add(uint64_t value) {
    buckets_[bucket_of(value)]++;
    count_++;
    sum_ += static_cast<double>(value);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
}

void Histogram::add(const Histogram& other) {
    for (size_t i = 0; i < buckets_.size(); i++) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
}

void Histogram::add_bucket(unsigned bucket, uint64_t count) {
    if (count == 0) return;
    const uint64_t middle = bucket_middle(bucket);
    buckets_[bucket] += count;
    count_ += count;
    sum_ += static_cast<double>(middle) * static_cast<double>(count);
    min_ = std::min(min_, middle);
    max_ = std::max(max_, middle);
}

double Histogram::mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }

uint64_t Histogram::percentile(double percent) const {
    const auto wanted =
        static_cast<uint64_t>(std::ceil(std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_)));
    uint64_t seen = 0;

    for (unsigned i = 0; i < buckets_.size(); i++) {
        seen += buckets_[i];
        if (buckets_[i] == 0 || seen < std::max<uint64_t>(wanted, 1)) continue;
        return std::clamp(bucket_middle(i), min_, max_);
    }
    return 0;
}

std::vector<uint64_t> Histogram::words() const {
    std::vector<uint64_t> words = {count_, min_, max_, std::bit_cast<uint64_t>(sum_)};
    words.insert(words.end(), buckets_.begin(), buckets_.end());
    return words;
}

Histogram Histogram::from_words(std::span<const uint64_t> words) {
    Histogram histogram;
    histogram.min_ = words[1];
    histogram.max_ = words[2];
    histogram.sum_ = std::bit_cast<double>(words[3]);
    histogram.buckets_.assign(words.begin() + 4, words.end());
    for (const uint64_t count : histogram.buckets_) histogram.count_ += count;
    const bool sound = histogram.min_ <= histogram.max_ && std::isfinite(histogram.sum_);
    return sound && histogram.count_ ? histogram : Histogram();
}

uint64_t Histogram::needed(double percent) {
    constexpr double beyond = 10;

    // 100 - 99.9 is a little less than 0.1.
    return static_cast<uint64_t>(std::llround(std::ceil(beyond * 100 / (100 - percent) - 1e-6)));
}

} // namespace kxfer::bench
