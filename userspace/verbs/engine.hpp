// SPDX-License-Identifier: MIT
//
// The user-space side of every comparison: operations by libibverbs over a connection made by
// rdma_cm or explicitly (engine_exchange.cpp). The engine posts one list of work requests a step,
// asks for each completion and polls the CQ for them, as perftest does. Unless it is told to
// wait for events it never sleeps, so it holds its CPU while it waits.
//
// Messages are sent under credits: a periodic READ of the responder's status shows how many
// receives it has posted again.
//
// UC and UD (explicit connections only) use their own QP for what is measured, and the control QP
// (endpoint.hpp) for all else: READs of the status and of data that is verified. A completion
// of UC or UD only shows that a request was sent. Messages that the responder has not counted
// within a grace period are given up and reported as losses, so no wait is endless. WRITEs over
// UC leave no count at the responder. So the last one is followed by a WRITE with immediate and
// without bytes, which arrives after them: a QP of UC delivers in order.
//
// On rxe and siw the provider enters the kernel for each doorbell: there user
// space does not bypass the kernel.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <netinet/in.h>

#include "engine/engine.hpp"
#include "verbs/connection.hpp"
#include "verbs/device_clock.hpp"
#include "verbs/device_memory.hpp"
#include "verbs/exchange.hpp"
#include "verbs/messages.hpp"
#include "verbs/walk.hpp"
#include "verbs/wire.hpp"

namespace kxfer::verbs {

enum class Connect : uint8_t {
    rdma_cm,
    tcp, // QPN, PSN and GID are exchanged over TCP, and the QP is moved by ibv_modify_qp()
};

struct EngineOptions {
    sockaddr_storage peer{}; // address of a responder
    Connect connect = Connect::rdma_cm;
    sockaddr_storage exchange{};         // TCP address of the same responder
    Transport transport = Transport::rc; // UC, UD: tcp only
    std::optional<uint32_t> qkey;        // UD: Q_Key of messages; default: the responder's
    std::optional<uint32_t> gid_index;   // tcp only; default: the entry of the own address
    std::optional<ibv_mtu> mtu;          // tcp only; default: the port's
    std::optional<uint8_t> tos;          // type of service; default: rdma-cm: the device's; tcp: 0
    Patience patience;                   // rdma-cm: rnr_retry alone
    uint8_t min_rnr_timer = 12;          // tcp only: timer code for the responder's RNR NAKs
    bool timestamps = false;             // completions have a time of the device's clock
    bool device_memory = false;          // use device memory in place of the local memory
    bool inline_writes = true;           // a short WRITE's payload goes in its work request
    bool events = false;                 // sleep until an event of the CQ instead of polling
    sockaddr_storage local{};            // own address; family 0: any
    unsigned depth = 1;
    unsigned batch = 1;
    bool signal_batch = false; // only the last of a batch is signalled
    uint64_t remote_bytes = 0; // memory to ask for; 0: as much as the local memory
    bool writable = true;      // ask for memory that may be written
    std::chrono::milliseconds timeout{10000};
};

class Engine : public bench::SteppedEngine {
  public:
    // The memory has to outlive the engine; the peer is asked for as much unless options say otherwise.
    static tl::expected<std::unique_ptr<Engine>, Error> connect(const EngineOptions& options,
                                                                const bench::Memory& memory);
    ~Engine() override;

    std::string name() const override { return "verbs"; }
    bench::Parameters parameters(const bench::Workload& workload) const override;
    bool remote_writable() const override { return options_.writable; }
    std::optional<bench::Registration> registration() const override;
    tl::expected<void, Error> supports(bench::Operation operation) const override;
    tl::expected<void, Error> make_ready(const bench::Workload& workload) override;
    tl::expected<void, Error> settle() override;
    tl::expected<void, Error> load() override;
    tl::expected<void, Error> store() override;
    std::optional<bench::Histogram> take_device_gaps() override;
    bool is_reliable() const override { return options_.transport == Transport::rc; }
    std::optional<bench::Losses> losses() const override;
    tl::expected<unsigned, Error> step(std::span<const bench::Transfer> transfers, unsigned wait) override;
    // The steps that moved the QP through its states; empty if rdma_cm did it.
    const std::vector<Step>& steps() const { return steps_; }

  private:
    Engine(const EngineOptions& options, const bench::Memory& memory, bench::Memory status);
    tl::expected<void, Error> connect();
    tl::expected<void, Error> connect_by_cm(Clock::time_point deadline);
    tl::expected<void, Error> connect_once(Clock::time_point deadline);
    tl::expected<void, Error> connect_by_tcp(Clock::time_point deadline);
    tl::expected<void, Error> address_peer(const LocalPort& port, const End& peer);
    tl::expected<End, Error> own_end(const LocalPort& port) const;
    tl::expected<End, Error> exchange(const End& own, Clock::time_point deadline);
    Request request() const;
    int own_access() const;
    tl::expected<void, Error> reconnect();
    void disconnect();
    tl::expected<void, Error> resolve(Clock::time_point deadline);
    tl::expected<void, Error> create();
    tl::expected<void, Error> establish(Clock::time_point deadline);
    tl::expected<Event, Error> expect(rdma_cm_event_type type, Clock::time_point deadline,
                                      const std::string& what, const std::string& advice);
    Error refusal(const rdma_cm_event& event) const;
    Error refusal(int error) const;
    tl::expected<void, Error> create_extras();
    bench::Connection find_connection() const;
    uint64_t local(uint64_t offset) const;
    int poll_cq(std::span<ibv_wc> completions);
    Error cannot(bench::Operation operation, const std::string& why) const;
    tl::expected<void, Error> carries(const bench::Workload& workload) const;
    Receiving receiving_for(const bench::Workload& workload) const;
    ibv_qp* qp_of(bench::Operation operation) const;
    tl::expected<void, Error> read_status();
    tl::expected<void, Error> settle_messages();
    tl::expected<void, Error> settle_writes();
    void fill_message(const bench::Transfer& transfer, ibv_send_wr& request, ibv_sge& sge);
    void fill(const bench::Transfer& transfer, ibv_send_wr& request, ibv_sge& sge);
    tl::expected<void, Error> post(std::span<const bench::Transfer> transfers);
    tl::expected<void, Error> post_atomic_writes(std::span<const bench::Transfer> transfers);
    bool is_signalled(size_t index, size_t count) const;
    bool is_inline(const bench::Transfer& transfer) const;
    tl::expected<void, Error> post_status_read();
    Error post_error(bench::Operation operation, int error) const;
    tl::expected<unsigned, Error> wait_for_credits(uint64_t messages);
    template <typename Done> tl::expected<unsigned, Error> poll_until(Done done);
    tl::expected<void, Error> sleep_for_event();
    Error silence() const;
    tl::expected<void, Error> check(const ibv_wc& completion);
    Status status() const;

    EngineOptions options_;
    const bench::Memory& memory_;
    std::string peer_;
    Channel channel_;
    QueuePair pair_;
    std::optional<DeviceMemory> device_memory_;
    DeviceClock clock_;
    Socket socket_; // explicit connections only
    std::vector<Step> steps_;
    Answer remote_;
    uint32_t mtu_bytes_ = 0; // tcp only
    // UD only.
    uint32_t remote_qpn_ = 0;
    uint32_t remote_qkey_ = 0;
    // Facts of the device; they stay when the connection ends.
    std::string device_;
    bench::Connection path_;
    bool iwarp_ = false;
    ibv_atomic_cap atomics_ = IBV_ATOMIC_NONE;
    bool atomic_writes_ = false;
    bool flushes_ = false;
    // The operation that the connection was made for besides READ and WRITE, and its state.
    bench::Workload workload_{bench::Operation::read, 0, 1, 1};
    Receiving receiving_;
    Credits credits_;
    std::vector<uint64_t> swaps_; // atomics done on each slot: COMPARE_SWAP, ATOMIC_WRITE add one
    // The responder's status, as READ last.
    bench::Memory status_;
    std::unique_ptr<ibv_mr, DeregisterMr> status_mr_;
    bool reading_status_ = false;
    bool failed_ = false;
    bool unsettled_ = false; // UC, UD: data was sent that may not have arrived yet
    bool armed_ = false;     // the CQ will raise an event, or one has not been taken yet
    std::vector<ibv_send_wr> requests_;
    std::vector<ibv_sge> sges_;
};

} // namespace kxfer::verbs
