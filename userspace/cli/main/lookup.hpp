// SPDX-License-Identifier: MIT
//
// What is on this node and its peers, for completion.
#pragma once

#include "cli/main/completion.hpp"

namespace kxfer::cli {

class NodeLookup : public Lookup {
  public:
    std::vector<Candidate> devices() const override;
    std::vector<Candidate> peers() const override;
    std::vector<Candidate> links() const override;
    std::vector<Candidate> keys() const override;
    std::vector<Candidate> exports(const std::string& peer, const std::string& key) const override;
};

} // namespace kxfer::cli
