// SPDX-License-Identifier: MIT
//
// Latencies in nanoseconds in log-linear buckets: values below 2^precision_bits
// have a bucket each; above, every power of two is cut into 2^(precision_bits-1)
// buckets of equal width, so that a bucket's width is at most 1/128 of
// its values. All of uint64_t fits; the size is fixed; histograms add up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kxfer::bench {

class Histogram {
  public:
    static constexpr unsigned precision_bits = 8;

    Histogram();
    void add(uint64_t value);
    void add(const Histogram& other);
    // Adds `count` values of which only the bucket is known: each counts as its middle.
    void add_bucket(unsigned bucket, uint64_t count);

    uint64_t count() const { return count_; }
    uint64_t min() const { return count_ ? min_ : 0; }
    uint64_t max() const { return max_; }
    double mean() const;
    // The value below or at which that percentage of all values lies: the middle
    // of its bucket, so at most 1/256 off, never outside min() and max(). 0 while empty.
    uint64_t percentile(double percent) const;
    // Whether there are enough values for the percentile: if fewer than ten lie beyond it, it is
    // a guess.
    bool supports(double percent) const { return count_ >= needed(percent); }
    // Values that the percentile needs.
    static uint64_t needed(double percent);

    // The histogram as nr_words() numbers for another process, and back. The numbers come from an
    // untrusted process: empty if they are inconsistent.
    std::vector<uint64_t> words() const;
    static Histogram from_words(std::span<const uint64_t> words);
    static size_t nr_words() { return 4 + nr_buckets(); }

    uint64_t count_in(unsigned bucket) const { return buckets_[bucket]; }
    static unsigned bucket_of(uint64_t value);
    // First and last value of a bucket.
    static uint64_t bucket_first(unsigned bucket);
    static uint64_t bucket_last(unsigned bucket);
    static unsigned nr_buckets();

  private:
    std::vector<uint64_t> buckets_;
    uint64_t count_ = 0;
    uint64_t min_ = UINT64_MAX;
    uint64_t max_ = 0;
    double sum_ = 0;
};

} // namespace kxfer::bench
