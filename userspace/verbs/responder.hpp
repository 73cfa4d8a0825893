// SPDX-License-Identifier: MIT
//
// The passive side of the verbs engine: a thread that accepts connections. Each gets
// memory of its own, as much as the initiator has; a connection for messages also gets
// receives and a thread that handles them. The responder exposes nothing else, sleeps while the
// network does the work, and limits what it gives away (max_connections, max_bytes, max_receives):
// any local user of the peer's machine may ask.
//
// Time is limited too. To move a QP to RTR the kernel resolves the MAC of the peer's address,
// and gives up after a second if no node answers. A caller over TCP names that address, which
// need not be the one it calls from. So in each round the thread checks whether to end, takes one
// event of rdma_cm, and answers one caller. An event waits at most for the event before it and
// for one caller, of two QPs at most, however many callers there are. A caller waits for those
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

#include "engine/workload.hpp"
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
    static constexpr uint64_t max_bytes = 256ULL << 20; // all connections together
    static constexpr uint32_t max_receives = 8192;      // each connection

    // Listens at the address, and on the next port over TCP for explicit connections. With
    // port 0 any two ports are used. Lookups of UD QPs are on RDMA_PS_UDP, on the same port as
    // rdma_cm. Ends with the object. period: time between probes (probe.hpp).
    static tl::expected<std::unique_ptr<VerbsResponder>, Error>
    start(const sockaddr_storage& address, Clock::duration period = std::chrono::seconds(30));
    ~VerbsResponder();

    uint16_t port() const;
    uint16_t exchange_port() const { return callers_.port(); } // TCP
    // The errno with which the thread gave up; 0 while it runs.
    int ended() const { return error_; }
    // The address that was asked for.
    const std::string& name() const { return name_; }

  private:
    struct Connection {
        explicit Connection(bench::Memory own) : memory(std::move(own)) {}

        bench::Memory memory;
        uint64_t length = 0; // the initiator's part of the memory
        QueuePair pair;
        Probe probe;
        Socket socket;                      // explicit connections only; its end ends the connection
        std::unique_ptr<Receiver> receiver; // if receives were asked for
    };

    VerbsResponder() = default;
    void run();
    // False: the thread has to end.
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
    std::unique_ptr<rdma_cm_id, DestroyId> lookups_; // RDMA_PS_UDP; null: there is no UD
    Callers callers_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::string name_;
    Clock::duration period_{};
    std::atomic<int> error_{0};
    int stop_fd_ = -1;
    std::thread thread_;
};

// Parameters for accepting a connection by rdma_cm: what the peer asks for, within the device's limits.
rdma_conn_param accepting(const rdma_conn_param& asked, const ibv_device_attr& device);

} // namespace kxfer::verbs
