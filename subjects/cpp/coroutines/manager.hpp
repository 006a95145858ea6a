// The manager of a thread: it dispatches events, starts services when what they require is there, and stops them
// before it goes.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coroutine.hpp"
#include "queue.hpp"
#include "services.hpp"

namespace manner {

struct Insert final : EventOf<Insert> {
    Insert(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::unique_ptr<Lifecycle> service)
        : EventOf(id, origin, priority), service(std::move(service)) {}
    std::unique_ptr<Lifecycle> service;
};
struct Request final : EventOf<Request> {
    Request(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::uint64_t interface)
        : EventOf(id, origin, priority), interface(interface) {}
    std::uint64_t interface;
};
struct Online final : EventOf<Online> {
    using EventOf::EventOf;
};
struct Offline final : EventOf<Offline> {
    using EventOf::EventOf;
};
struct Start final : EventOf<Start> {
    Start(std::uint64_t id, ServiceId origin, std::uint64_t priority, ServiceId service)
        : EventOf(id, origin, priority), service(service) {}
    ServiceId service;
};
struct Stop final : EventOf<Stop> {
    Stop(std::uint64_t id, ServiceId origin, std::uint64_t priority, ServiceId service, bool remove)
        : EventOf(id, origin, priority), service(service), remove(remove) {}
    ServiceId service;
    bool remove;
};
struct Ended final : EventOf<Ended> {
    Ended(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::uint64_t task)
        : EventOf(id, origin, priority), task(task) {}
    std::uint64_t task;
};
struct Quit final : EventOf<Quit> {
    using EventOf::EventOf;
};
// Runs a coroutine on the thread of the queue.
struct Run final : EventOf<Run> {
    Run(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::function<Task()> function)
        : EventOf(id, origin, priority), function(std::move(function)) {}
    std::function<Task()> function;
};

class Manager final : public Dispatcher, public Keeper {
public:
    using Handler = std::function<Task(const Event&)>;  // one a type
    using Tracker = std::function<void(Lifecycle& requester)>;
    // Called before an event is handled; false keeps it from being handled.
    using Interceptor = std::function<bool(const Event&)>;

    explicit Manager(Queue& queue) : queue_(queue) {}

    Queue& queue() noexcept { return queue_; }

    // Inserts a service of the given kind of Lifecycle; it starts when it can. Returns its id.
    template <class L>
    ServiceId insert(Properties properties) {
        const ServiceId id = next_service_++;
        auto service = std::make_unique<L>(id, std::move(properties));
        const auto& required = service->dependencies().all();
        std::vector<std::uint64_t> interfaces;
        interfaces.reserve(required.size());
        for (const Dependency& dependency : required) {
            interfaces.push_back(dependency.interface);
        }
        queue_.push<Insert>(id, priority::insert, std::move(service));
        for (const std::uint64_t interface : interfaces) {
            queue_.push<Request>(id, priority::dependency, interface);
        }
        return id;
    }

    // From now on `make` is called for each service that requires `interface`, also for those that are there already.
    void track(std::uint64_t interface, Tracker make);
    void handle(std::uint64_t type, Handler handler) { handlers_[type] = std::move(handler); }
    void intercept(std::uint64_t type, Interceptor interceptor) { interceptors_[type].push_back(std::move(interceptor)); }
    // Called with each event of a type: a function and no coroutine. Where both are there, the coroutine is taken.
    void listen(std::uint64_t type, std::function<void(const Event&)> listener) { listeners_[type] = std::move(listener); }
    // Events dispatched so far that are not the manager's own.
    std::uint64_t dispatched() const noexcept { return dispatched_; }

    void dispatch(std::unique_ptr<Event> event) override;
    void ended(std::uint64_t task) override { queue_.push<Ended>(0, priority::coroutine, task); }

private:
    // A coroutine that waits, and the event that it came from: what it captured may be part of the event.
    struct Kept {
        std::unique_ptr<Event> event;
        Task task;
        std::function<void()> then;
    };

    bool intercepted(const Event& event);
    void handle_by_type(std::unique_ptr<Event> event);
    void on_insert(Insert& event);
    void on_request(const Request& event);
    void on_online(const Online& event);
    void on_offline(const Offline& event);
    void on_start(const Start& event);
    void on_stop(const Stop& event);
    void on_ended(const Ended& event);
    void on_quit();
    void on_run(std::unique_ptr<Event> event);
    void on_other(std::unique_ptr<Event> event);

    void keep(Task task, std::function<void()> then, std::unique_ptr<Event> event = nullptr);
    void start(Lifecycle& service);
    void stopped(Lifecycle& service);
    void push_stop(ServiceId service, bool remove);
    Lifecycle* find(ServiceId id) noexcept;
    static std::optional<ServiceId> only_one(const Lifecycle& service);

    Queue& queue_;
    std::unordered_map<ServiceId, std::unique_ptr<Lifecycle>> services_;
    std::unordered_map<std::uint64_t, std::vector<Tracker>> trackers_;
    std::unordered_map<std::uint64_t, Handler> handlers_;
    std::unordered_map<std::uint64_t, std::vector<Interceptor>> interceptors_;
    std::unordered_map<std::uint64_t, Kept> kept_;
    std::unordered_map<std::uint64_t, std::function<void(const Event&)>> listeners_;
    std::uint64_t dispatched_ = 0;
    ServiceId next_service_ = 1;
    std::uint64_t next_task_ = 1;
    bool quitting_ = false;
};

}  // namespace manner
