// SPDX-License-Identifier: MIT
//
// Values in one histogram, and in the sum of two histograms, compared with the sorted values
// themselves.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/histogram.hpp"

using kxfer::bench::Histogram;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "FOUND: %s\n", what);
    abort();
}

// As histogram.hpp documents: the middle of a bucket, whose width is at most a 128th of its
// values.
void check_percentile(const Histogram& histogram, const std::vector<uint64_t>& sorted, unsigned percent) {
    const uint64_t got = histogram.percentile(percent);
    const auto rank = static_cast<size_t>(std::ceil(percent / 100.0 * static_cast<double>(sorted.size())));
    const uint64_t wanted = sorted[std::max<size_t>(rank, 1) - 1];
    const uint64_t off = got > wanted ? got - wanted : wanted - got;
    require(off <= wanted / 128, "a percentile that is too far off");
    require(got >= sorted.front() && got <= sorted.back(), "a percentile outside the values");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::vector<uint64_t> values;
    Histogram whole;
    Histogram odd;
    Histogram sum;

    // Each value is a byte with its number of bits, and eight bytes with the bits.
    for (; size >= 9; data += 9, size -= 9) {
        uint64_t value = 0;
        memcpy(&value, data + 1, sizeof(value));
        value >>= data[0] % 64;
        whole.add(value);
        (data[0] & 64 ? odd : sum).add(value);
        values.push_back(value);
    }
    sum.add(odd);
    require(whole.count() == values.size() && sum.count() == values.size(), "values that are not counted");
    if (values.empty()) {
        require(whole.percentile(50) == 0 && whole.min() == 0 && whole.max() == 0, "an empty histogram");
        return 0;
    }
    std::sort(values.begin(), values.end());
    require(whole.min() == values.front() && whole.max() == values.back(), "a wrong minimum or maximum");
    require(sum.min() == whole.min() && sum.max() == whole.max(), "another minimum or maximum of a sum");
    for (const unsigned percent : {0U, 1U, 50U, 90U, 99U, 100U}) {
        check_percentile(whole, values, percent);
        require(sum.percentile(percent) == whole.percentile(percent), "a sum is another histogram");
    }
    return 0;
}
