// Tasks, which are coroutines, and an event that they await.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace manner {

class Task;

// Told when a task that it keeps has come to its end.
class Keeper {
public:
    virtual ~Keeper() = default;
    virtual void ended(std::uint64_t task) = 0;
};

// A coroutine that begins when it is awaited or resumed, and belongs to whoever has the Task.
class [[nodiscard]] Task {
public:
    struct promise_type;
    using Handle = std::coroutine_handle<promise_type>;

    struct AtEnd {
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle handle) const noexcept;
        void await_resume() const noexcept {}
    };

    struct promise_type {
        Task get_return_object() noexcept { return Task(Handle::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        AtEnd final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

        std::coroutine_handle<> waiting;
        Keeper* keeper = nullptr;
        std::uint64_t id = 0;
    };

    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (handle_) {
            handle_.destroy();
        }
    }

    void resume() const { handle_.resume(); }
    bool done() const noexcept { return handle_.done(); }
    // From now on `keeper` is told of its end.
    void keep(Keeper& keeper, std::uint64_t id) const noexcept {
        handle_.promise().keeper = &keeper;
        handle_.promise().id = id;
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) const noexcept {
        handle_.promise().waiting = waiting;
        return handle_;
    }
    void await_resume() const noexcept {}

private:
    explicit Task(Handle handle) noexcept : handle_(handle) {}
    Handle handle_;
};

inline std::coroutine_handle<> Task::AtEnd::await_suspend(Handle handle) const noexcept {
    promise_type& promise = handle.promise();
    if (promise.waiting) {
        return promise.waiting;
    }
    if (promise.keeper != nullptr) {
        promise.keeper->ended(promise.id);
    }
    return std::noop_coroutine();
}

// Resumes one waiting coroutine each time that it is set; stays set until one comes if none waits. Any thread may set
// it, hence the lock.
class AutoResetEvent {
public:
    struct Waiter {
        bool await_ready() const noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> handle) {
            const std::lock_guard lock(event.mutex_);
            if (std::exchange(event.set_, false)) {
                return false;
            }
            coroutine = handle;
            *event.last_ = this;
            event.last_ = &next;
            return true;
        }
        void await_resume() const noexcept {}

        AutoResetEvent& event;
        std::coroutine_handle<> coroutine{};
        Waiter* next = nullptr;
    };

    Waiter operator co_await() noexcept { return Waiter{*this}; }

    void set() {
        if (const auto coroutine = take()) {
            coroutine.resume();
        }
    }

private:
    std::coroutine_handle<> take() {
        const std::lock_guard lock(mutex_);
        Waiter* const waiter = first_;
        if (waiter == nullptr) {
            set_ = true;
            return nullptr;
        }
        first_ = waiter->next;
        if (first_ == nullptr) {
            last_ = &first_;
        }
        return waiter->coroutine;
    }

    std::mutex mutex_;
    Waiter* first_ = nullptr;
    Waiter** last_ = &first_;
    bool set_ = false;
};

}  // namespace manner
