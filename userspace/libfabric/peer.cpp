// SPDX-License-Identifier: MIT
#include "libfabric/peer.hpp"

#include <algorithm>
#include <cerrno>

#include "libfabric/endpoint.hpp"
#include "libfabric/send.hpp"

namespace kxfer::fi {

static constexpr uint64_t quiet_ns = 1000000000;

Peer::Peer(Endpoint& to_endpoint, const Address& of) : endpoint(to_endpoint), address(of), ping_(*this) {}

Peer::~Peer() {
    forget_remotes();
    if (target != 0) kxfer_target_destroy(endpoint.domain.session, target);
}

void Peer::pin(uint64_t own_word, uint64_t word) {
    pinned_ = true;
    own_word_ = own_word;
    word_ = word;
}

int Peer::connect() {
    kxfer_target_open opened;
    if (over_) return -ENOTCONN;
    if (failed_) return -FI_EAGAIN;
    if (outdated_ && is_idle()) {
        failed_ = target != 0;
        forget_remotes();
        disconnect();
    }
    if (target != 0) return 0;
    int ret = endpoint.domain.open_target(address, mailbox_name(address.port), KXFER_RIGHT_SEND,
                                          pinned_ ? own_word_ : random_number(), &opened);
    if (ret != 0) {
        FI_INFO(&provider, FI_LOG_EP_CTRL, "cannot reach %s: %s\n", text_of(address).c_str(),
                fi_strerror(-ret));
        return ret;
    }
    target = opened.target;
    domain_id = opened.cookie;
    next_sequence = 0;
    outdated_ = false;
    heard_ns_ = kxfer_clock_ns();
    return 0;
}

bool Peer::is_idle() const {
    return in_flight == 0 && unanswered.empty() && (queue.empty() || !queue.front()->begun);
}

void Peer::fail(int status) {
    if (status != -ECANCELED)
        FI_INFO(&provider, FI_LOG_EP_CTRL, "%s: the connection ended: %s\n", text_of(address).c_str(),
                fi_strerror(-status));
    failed_ = target != 0;
    over_ = pinned_;
    std::deque<Send*> lost;
    lost.swap(queue);
    for (auto& [id, send] : unanswered)
        if (std::find(lost.begin(), lost.end(), send) == lost.end()) lost.push_back(send);
    unanswered.clear();
    forget_remotes();
    for (Send* send : lost) endpoint.outbox.lose(*send, status);
    // Of a peer that has connected again since, it says nothing: the next connection, or its ping, will. What
    // the peer of a connection had sent before is still taken (Connection::go_on()).
    if (!outdated_ && !pinned_) {
        endpoint.inbox.lose(*this, status);
        was_heard_ = false;
    }
    outdated_ = false;
    if (in_flight == 0) disconnect();
    if (endpoint.connection) endpoint.connection->lost(*this, status);
}

void Peer::disconnect() {
    if (!failed_) return;
    failed_ = false;
    kxfer_target_destroy(endpoint.domain.session, target);
    target = 0;
}

void Peer::end_job() {
    in_flight--;
    if (in_flight == 0) disconnect();
}

bool Peer::admit(uint64_t word) {
    if (pinned_ && word != word_) return false;
    if (was_heard_ && word != word_ && word == old_word_) return false;
    if (word != word_) {
        // What the peer had begun to send before does not go on.
        if (was_heard_) endpoint.inbox.lose(*this, -ECONNRESET);
        outdated_ = was_heard_ && target != 0;
        old_word_ = word_;
        word_ = word;
        expected_sequence = 0;
        early.clear();
    }
    was_heard_ = true;
    heard_ns_ = kxfer_clock_ns();
    return true;
}

bool Peer::expects() const {
    if (endpoint.connection && endpoint.connection->expects(*this)) return true;
    return !unanswered.empty() || !arrivals.empty() || endpoint.inbox.matching.waits_for(*this);
}

void Peer::look_after() {
    if (ping_.in_flight || !expects() || kxfer_clock_ns() - heard_ns_ < quiet_ns) return;
    // One that was never reached, nor has sent anything, may still have to begin.
    if (!was_heard_ && target == 0) return;
    int ret = connect();
    if (ret == -FI_EAGAIN) return;
    if (ret == 0) ret = endpoint.domain.submit(kxfer_job_make_send(0, 0, target, 0, 0), ping_);
    if (ret == 0) {
        ping_.in_flight = true;
        begin_job();
    } else if (ret != -FI_EAGAIN) {
        fail(ret);
    }
}

// A mailbox that is full is there.
void Peer::Ping::ended(const kxfer_completion& completion) {
    in_flight = false;
    if (completion.status == 0 || completion.status == -EAGAIN)
        peer_.heard_ns_ = kxfer_clock_ns();
    else if (peer_.is_connected())
        peer_.fail(completion.status);
    peer_.end_job();
}

int Peer::open_remote(uint64_t key, Remote** remote) {
    auto found = remotes_.find(key);
    if (found != remotes_.end()) {
        *remote = found->second;
        return 0;
    }
    int ret = connect();
    if (ret != 0) return ret;
    kxfer_target_open opened;
    ret = endpoint.domain.open_target(address, memory_name(domain_id, key), 0, 0, &opened);
    if (ret == -EDQUOT && !remotes_.empty()) {
        forget_remotes();
        ret = endpoint.domain.open_target(address, memory_name(domain_id, key), 0, 0, &opened);
    }
    if (ret != 0) return ret;
    *remote = new Remote{opened.target, opened.cookie};
    remotes_.emplace(key, *remote);
    return 0;
}

static void close_remote(Domain& domain, Remote* remote) {
    if (remote->jobs > 0) {
        remote->stale = true;
        return;
    }
    kxfer_target_destroy(domain.session, remote->target);
    delete remote;
}

void Peer::end_remote_job(Remote* remote) {
    remote->jobs--;
    if (remote->stale) close_remote(endpoint.domain, remote);
}

void Peer::forget_remote(uint64_t key) {
    auto found = remotes_.find(key);
    if (found == remotes_.end()) return;
    close_remote(endpoint.domain, found->second);
    remotes_.erase(found);
}

void Peer::forget_remotes() {
    for (auto& [key, remote] : remotes_) close_remote(endpoint.domain, remote);
    remotes_.clear();
}

} // namespace kxfer::fi
