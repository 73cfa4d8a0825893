// SPDX-License-Identifier: MIT
//
// Reads an export of a peer to standard output, in C++: DEPTH READs are under way at a time.
//
//     kxfer serve results.tar                              (on the peer)
//     kxfer-fetch 10.77.0.1 results.tar >results.tar
//
// Region, peer and target are objects that clean up after themselves, last first. The memory
// is declared before its region, so it outlives it. Each call returns its result or an Error.
//
// c++ -std=c++20 fetch.cpp -o kxfer-fetch $(pkg-config --cflags --libs kxfer)
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <netdb.h>

#include <kxfer/kxfer.hpp>

namespace {

using namespace std::chrono_literals;

constexpr uint64_t depth = 16;
constexpr uint64_t piece = 64 * 1024;

kxfer::Expected<kxfer_addr> find(const char* host) {
    addrinfo* found = nullptr;
    kxfer_addr address = {};
    if (getaddrinfo(host, nullptr, nullptr, &found) != 0)
        return kxfer::fail("cannot find the host", host, EHOSTUNREACH);
    kxfer_addr_from_sockaddr(found->ai_addr, &address);
    freeaddrinfo(found);
    return address;
}

// Piece N of the export goes through slot N % depth of the region; user_data is that slot. READs
// complete in any order, and pieces are written in theirs.
kxfer::Expected<void> copy(kxfer::Session& session, const kxfer::Region& region,
                           std::span<const std::byte> memory, const kxfer::Target& target) {
    std::array<kxfer::Completion, depth> room;
    std::array<bool, depth> arrived = {};
    uint64_t asked = 0, written = 0;
    const auto length_at = [&](uint64_t offset) { return std::min(piece, target.length() - offset); };

    while (written < target.length()) {
        std::vector<kxfer::Job> jobs;
        for (; asked < target.length() && asked < written + depth * piece; asked += piece) {
            const uint64_t slot = asked / piece % depth;
            jobs.push_back(
                kxfer::Job::read(region, slot * piece, target, asked, length_at(asked), slot).by(10s));
        }
        if (!jobs.empty()) {
            const auto accepted = session.submit(jobs);
            if (!accepted) return tl::make_unexpected(accepted.error());
            asked -= (jobs.size() - *accepted) * piece; // the others are asked for again
        }
        const auto taken = session.reap(room, 1, 10s);
        if (!taken) return tl::make_unexpected(taken.error());
        for (const kxfer::Completion& done : *taken) {
            if (!done.ok()) return tl::make_unexpected(done.result().error());
            arrived[done.user_data] = true;
        }
        for (; written < target.length() && arrived[written / piece % depth]; written += piece) {
            const uint64_t slot = written / piece % depth;
            if (fwrite(&memory[slot * piece], length_at(written), 1, stdout) != 1)
                return kxfer::fail("cannot write to", "standard output", errno);
            arrived[slot] = false;
        }
    }
    if (fflush(stdout) != 0) return kxfer::fail("cannot write to", "standard output", errno);
    return {};
}

kxfer::Expected<void> fetch(const char* host, const char* name) {
    const auto address = find(host);
    if (!address) return tl::make_unexpected(address.error());
    auto session = kxfer::Session::open();
    if (!session) return tl::make_unexpected(session.error());
    auto peer = session->connect(*address);
    if (!peer) return tl::make_unexpected(peer.error());
    const auto target = peer->open_target(name, KXFER_RIGHT_READ, 10s);
    if (!target) return tl::make_unexpected(target.error());
    std::vector<std::byte> memory(depth * piece);
    const auto region = session->add_region(memory, KXFER_REGION_F_WRITE);
    if (!region) return tl::make_unexpected(region.error());
    const auto copied = copy(*session, *region, memory, *target);
    session->drain(10s); // ends what an error has left in flight, before the memory goes
    return copied;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: kxfer-fetch HOST NAME\n");
        return 2;
    }
    const auto done = fetch(argv[1], argv[2]);
    if (!done) fprintf(stderr, "kxfer-fetch: %s\n", done.error().text().c_str());
    return done ? 0 : 1;
}
