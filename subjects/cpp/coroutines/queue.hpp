// Events and the queue that they wait in: one queue a thread, a heap of owned pointers, a lock for every push.
//
// For the works of this program. Not a library: it has what they need.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace manner {

using ServiceId = std::uint64_t;

// Lower comes first.
namespace priority {
constexpr std::uint64_t insert = 50;
constexpr std::uint64_t coroutine = 98;
constexpr std::uint64_t dependency = 100;
constexpr std::uint64_t usual = 1000;
}  // namespace priority

// A number for a type, made from its name when this is compiled (FNV-1a).
template <class T>
consteval std::uint64_t number_of() {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : std::string_view(__PRETTY_FUNCTION__)) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
}

struct Event {
    Event(std::uint64_t id, ServiceId origin, std::uint64_t priority) noexcept
        : id(id), origin(origin), priority(priority) {}
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    virtual ~Event() = default;
    virtual std::uint64_t type() const noexcept = 0;

    const std::uint64_t id;
    const ServiceId origin;
    const std::uint64_t priority;
};

// What every event derives from: `struct Quit final : EventOf<Quit>`.
template <class Self>
struct EventOf : Event {
    using Event::Event;
    static constexpr std::uint64_t TYPE = number_of<Self>();
    std::uint64_t type() const noexcept final { return TYPE; }
};

class Dispatcher {
public:
    virtual ~Dispatcher() = default;
    virtual void dispatch(std::unique_ptr<Event> event) = 0;
};

class Queue {
public:
    virtual ~Queue() = default;
    virtual void put(std::unique_ptr<Event> event) = 0;
    // Dispatches until something calls `quit`; sleeps while there is nothing to do.
    virtual void run(Dispatcher& dispatcher) = 0;
    virtual void quit() noexcept = 0;

    // Makes an event and puts it in; any thread may. Returns its id, which rises from 1.
    template <class E, class... Args>
    std::uint64_t push(ServiceId origin, std::uint64_t priority, Args&&... args) {
        const std::uint64_t id = next_.fetch_add(1, std::memory_order_relaxed);
        put(std::make_unique<E>(id, origin, priority, std::forward<Args>(args)...));
        return id;
    }

private:
    std::atomic<std::uint64_t> next_ = 1;
};

// Events of equal priority come in any order.
struct AnyOrder {
    bool operator()(const std::unique_ptr<Event>& left, const std::unique_ptr<Event>& right) const noexcept {
        return left->priority > right->priority;
    }
};

// Events of equal priority come in the order in which they were pushed.
struct PushOrder {
    bool operator()(const std::unique_ptr<Event>& left, const std::unique_ptr<Event>& right) const noexcept {
        return left->priority != right->priority ? left->priority > right->priority : left->id > right->id;
    }
};

// std::priority_queue, written out because its `top` does not let an owned pointer be moved from it.
template <class Later>
class PriorityQueue final : public Queue {
public:
    void put(std::unique_ptr<Event> event) override {
        {
            const std::lock_guard lock(mutex_);
            heap_.push_back(std::move(event));
            std::push_heap(heap_.begin(), heap_.end(), Later{});
        }
        pushed_.notify_all();
    }

    void run(Dispatcher& dispatcher) override {
        while (!quit_.load(std::memory_order_acquire)) {
            dispatcher.dispatch(take());
        }
    }

    void quit() noexcept override { quit_.store(true, std::memory_order_release); }

private:
    std::unique_ptr<Event> take() {
        std::unique_lock lock(mutex_);
        pushed_.wait(lock, [this] { return !heap_.empty(); });
        std::pop_heap(heap_.begin(), heap_.end(), Later{});
        auto event = std::move(heap_.back());
        heap_.pop_back();
        return event;
    }

    std::vector<std::unique_ptr<Event>> heap_;
    std::shared_mutex mutex_;
    std::condition_variable_any pushed_;
    std::atomic<bool> quit_ = false;
};

}  // namespace manner
