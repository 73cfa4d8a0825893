// SPDX-License-Identifier: MIT
//
// The passive side of the verbs engine: a thread that accepts connections and
// gives each of them memory of its own, equal to the initiator's, and receives and
// a thread that takes them to who wants to send. It exposes nothing else, sleeps while the network does the
// work, and bounds what it gives away (max_connections, max_bytes, max_receives):
// any local user of the peer's machine may ask.
//
// Time is bounded too. To move a QP to RTR the kernel looks for the MAC of the peer's address,
// and gives up after a second if nobody has it; who calls over TCP names the address, and not
// always that it calls from. So in each round the thread looks whether it is to end, takes one
// event of rdma_cm, and answers one caller: an event waits no longer than for the one before
// it and for one caller, of two QPs at most, however many there are. A caller waits for those
// before it, at most Callers::max_waiting.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <tl/expected.hpp>

#include "bench/workload.hpp"
#include "verbs/connection.hpp"
#include "verbs/exchange.hpp"
#include "verbs/probe.hpp"
#include "verbs/receiver.hpp"
#include "verbs/wire.hpp"
#include <kxfer/error.hpp>

namespace kxfer::verbs {

class VerbsResponder {
  public:
    static constexpr unsigned max_connections = 8;
    static constexpr uint64_t max_bytes = 256ULL << 20; // of all connections
    static constexpr uint32_t max_receives = 8192;      // of a connection

    // Listens at the address, and over TCP for who connects QPs explicitly on the port
    // behind it; the port may be 0, then both are any. Who sends by UD looks its QP up on
    // RDMA_PS_UDP, the same port. Ends with the object. period: of probes (probe.hpp).
    static tl::expected<std::unique_ptr<VerbsResponder>, Error>
    start(const sockaddr_storage& address, Clock::duration period = std::chrono::seconds(30));
    ~VerbsResponder();

    uint16_t port() const;
    uint16_t exchange_port() const { return callers_.port(); } // TCP
    // The errno by which the thread had to give up; else 0.
    int ended() const { return error_; }
    // The address that was asked for.
    const std::string& name() const { return name_; }

  private:
    struct Connection {
        explicit Connection(bench::Memory own) : memory(std::move(own)) {}

        bench::Memory memory;
        uint64_t length = 0; // of it for the initiator
        QueuePair pair;
        Probe probe;
        Socket socket;                      // of who connects explicitly; its end is the connection's
        std::unique_ptr<Receiver> receiver; // of who asked for receives
    };

    VerbsResponder() = default;
    void run();
    // False: it is over.
    bool wait();
    bool take_event();
    void handle(Event event);
    void accept(rdma_cm_id* id, const rdma_cm_event& event);
    void tell(rdma_cm_id* id, const rdma_cm_event& event);
    void listen_for_lookups(sockaddr_storage address);
    void answer(Callers::Caller caller);
    tl::expected<WireReply, Error> connect(Callers::Caller& caller);
    tl::expected<std::unique_ptr<Connection>, Error> prepare(rdma_cm_id* id, const Request& request,
                                                             bool by_cm, Transport transport);
    static tl::expected<void, Error> receive(Connection& connection, const Request& request,
                                             std::function<void()> failed);
    static Answer answer_of(const Connection& connection);
    static void refuse(rdma_cm_id* id, int error, uint16_t version = wire_version);
    void drop(rdma_cm_id* id);
    void drop_ended(std::span<const pollfd> polled);
    void drop_silent();
    uint64_t bytes_given() const;

    Channel channel_;
    std::unique_ptr<rdma_cm_id, DestroyId> listener_;
    std::unique_ptr<rdma_cm_id, DestroyId> lookups_; // RDMA_PS_UDP; without it nobody sends by UD
    Callers callers_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::string name_;
    Clock::duration period_{};
    std::atomic<int> error_{0};
    int stop_fd_ = -1;
    std::thread thread_;
};

// What a connection by rdma_cm is accepted with: of what the peer asks for, what the device does.
rdma_conn_param accepting(const rdma_conn_param& asked, const ibv_device_attr& device);

} // namespace kxfer::verbs
