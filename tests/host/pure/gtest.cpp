// SPDX-License-Identifier: MIT
//
// The KUnit suites of tests/host/pure as tests of gtest, a test for each case.

#include <gtest/gtest.h>

#include <kunit/test.h>

namespace {

class PureCase : public testing::Test {
  public:
    explicit PureCase(kunit_case* test_case) : test_case_(test_case) {}

    void TestBody() override {
        kunit_run(test_case_,
                  [](const char* file, int line, const char* text) { ADD_FAILURE_AT(file, line) << text; });
    }

  private:
    kunit_case* test_case_;
};

// Registered before main(), which lists or runs the registered tests.
[[maybe_unused]] const bool registered = [] {
    for (auto** suite = __start_kunit_suites; suite != __stop_kunit_suites; suite++)
        for (kunit_case* c = (*suite)->test_cases; c->run_case; c++)
            testing::RegisterTest((*suite)->name, c->name, nullptr, nullptr, __FILE__, __LINE__,
                                  [c]() -> testing::Test* { return new PureCase(c); });
    return true;
}();

} // namespace
