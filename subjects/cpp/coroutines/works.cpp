#include "works.hpp"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "json.hpp"
#include "manager.hpp"

using namespace manner;

namespace {

// A logger that counts lines: the works measure no output.
class Logger {
public:
    virtual ~Logger() = default;
    virtual void log(std::string_view line) = 0;
    virtual std::uint64_t lines() const = 0;
};
class FrameworkLogger {
public:
    virtual ~FrameworkLogger() = default;
};

struct Counts {
    std::uint64_t starts = 0;
    std::uint64_t stops = 0;
};

// What each service of a work is given by its properties, beside what they are about.
template <class T>
T property(const Properties& properties, const char* name) {
    return std::any_cast<T>(properties.at(name));
}

class Counted : public Service {
public:
    explicit Counted(Counts& counts) : counts_(counts) {}
    Task start() override {
        ++counts_.starts;
        co_return;
    }
    Task stop() override {
        ++counts_.stops;
        co_return;
    }

protected:
    Counts& counts_;
};

}  // namespace

// --- coroutine: one coroutine awaits, another that came through the queue resumes it

namespace {

struct CoroutineWork {
    Manager* manager;
    std::uint64_t rounds;
    std::uint64_t sum = 0;
};
thread_local CoroutineWork* coroutine_work = nullptr;

class Waiting final : public Service {
public:
    Waiting(Dependencies&, Properties&, ServiceId id) : id_(id) {}
    Task start() override {
        coroutine_work->manager->queue().push<Run>(id_, priority::usual, [this] { return wait(); });
        co_return;
    }
    Task stop() override { co_return; }

private:
    Task wait() {
        Queue& queue = coroutine_work->manager->queue();
        for (std::uint64_t round = 0; round < coroutine_work->rounds; ++round) {
            queue.push<Run>(id_, priority::usual, [this, round] { return set(round); });
            co_await ready_;
            ++coroutine_work->sum;
        }
        queue.push<Quit>(id_, priority::usual);
    }
    Task set(std::uint64_t round) {
        coroutine_work->sum += round;
        ready_.set();
        co_return;
    }

    ServiceId id_;
    AutoResetEvent ready_;
};

}  // namespace

Outcome coroutine(const Options& options, unsigned) {
    PriorityQueue<AnyOrder> queue;
    Manager manager(queue);
    CoroutineWork work{&manager, options.count};
    coroutine_work = &work;
    manager.insert<Registered<Waiting>>({});
    queue.run(manager);
    return {.checksum = work.sum};
}

// --- event: all are pushed before any is popped; a handler sees each

namespace {

struct Useless final : EventOf<Useless> {
    Useless(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::uint64_t)
        : EventOf(id, origin, priority) {}
    std::uint64_t sum() const noexcept { return 0; }
};

// Carries 32 bytes.
struct Loaded final : EventOf<Loaded> {
    Loaded(std::uint64_t id, ServiceId origin, std::uint64_t priority, std::uint64_t number)
        : EventOf(id, origin, priority), words{number, number + 1, number + 2, number + 3} {}
    std::uint64_t sum() const noexcept { return words[0] + words[1] + words[2] + words[3]; }

    const std::array<std::uint64_t, 4> words;
};

// What the handler adds up.
template <class E>
struct Seen {
    std::uint64_t first = 0;
    std::uint64_t number = 0;
    std::uint64_t sum = 0;

    void note(const Event& event) {
        sum += (event.id - first + 1) * (++number % 7 + 1) + static_cast<const E&>(event).sum();
    }
    Task note_in_coroutine(const Event& event) {
        note(event);
        co_return;
    }
};

template <class Order, class E>
Outcome push_and_dispatch(const Options& options) {
    PriorityQueue<Order> queue;
    Manager manager(queue);
    Seen<E> seen;
    if (options.handling == Handling::coroutine) {
        manager.handle(E::TYPE, [&](const Event& event) { return seen.note_in_coroutine(event); });
    } else if (options.handling == Handling::plain) {
        manager.listen(E::TYPE, [&](const Event& event) { seen.note(event); });
    }
    for (std::uint64_t i = 0; i < options.count; ++i) {
        const std::uint64_t id = queue.template push<E>(0, priority::usual + i % options.priorities, i + 1);
        if (i == 0) {
            seen.first = id;
        }
    }
    queue.template push<Quit>(0, priority::usual + options.priorities);
    queue.run(manager);
    const bool none = options.handling == Handling::none;
    if (manager.dispatched() != options.count || (!none && seen.number != options.count)) {
        throw std::runtime_error("not every event was dispatched and seen");
    }
    return {.checksum = none ? manager.dispatched() : seen.sum};
}

template <class Order>
Outcome push_and_dispatch(const Options& options) {
    return options.payload == 0 ? push_and_dispatch<Order, Useless>(options) : push_and_dispatch<Order, Loaded>(options);
}

}  // namespace

Outcome event(const Options& options, unsigned) {
    return options.in_order ? push_and_dispatch<PushOrder>(options) : push_and_dispatch<AnyOrder>(options);
}

// --- start: many services, each with a logger of its own that a factory makes

namespace {

class NullLogger final : public Counted, public Logger {
public:
    NullLogger(Dependencies&, Properties& properties, ServiceId)
        : Counted(*property<Counts*>(properties, "Counts")), level_(property<int>(properties, "LogLevel")) {}
    void log(std::string_view) override { ++lines_; }
    std::uint64_t lines() const override { return lines_; }

private:
    [[maybe_unused]] int level_;
    std::uint64_t lines_ = 0;
};

class NullFrameworkLogger final : public Counted, public FrameworkLogger {
public:
    NullFrameworkLogger(Dependencies&, Properties& properties, ServiceId)
        : Counted(*property<Counts*>(properties, "Counts")) {}
};

// Makes a logger for each service that requires one, offered to that service only.
class LoggerFactory final : public Counted {
public:
    LoggerFactory(Dependencies& dependencies, Properties& properties, ServiceId)
        : Counted(*property<Counts*>(properties, "Counts")), manager_(*property<Manager*>(properties, "Manager")) {
        dependencies.require<FrameworkLogger>(*this);
    }
    Task start() override {
        manager_.track(number_of<Logger>(), [this](Lifecycle& requester) { make(requester); });
        return Counted::start();
    }
    void add(FrameworkLogger& logger, ServiceId) { logger_ = &logger; }
    void remove(FrameworkLogger&, ServiceId) { logger_ = nullptr; }

private:
    void make(Lifecycle& requester) {
        if (loggers_.contains(requester.id)) {
            return;
        }
        const auto level = requester.properties.find("LogLevel");
        Properties properties;
        properties.reserve(3);
        properties.emplace(only_for, requester.id);
        properties.emplace("LogLevel", level == requester.properties.end() ? std::any(0) : level->second);
        properties.emplace("Counts", &counts_);
        loggers_.emplace(requester.id, manager_.insert<Registered<NullLogger, Logger>>(std::move(properties)));
    }

    Manager& manager_;
    FrameworkLogger* logger_ = nullptr;
    std::unordered_map<ServiceId, ServiceId> loggers_;
};

// Of the thread: what its services count, and how many are to start.
struct StartWork {
    Manager* manager;
    Counts counts;
    std::uint64_t to_start;

    void started() {
        ++counts.starts;
        if (counts.starts == to_start) {
            manager->queue().push<Quit>(0, priority::usual);
        }
    }
};
thread_local StartWork* start_work = nullptr;

Task count_start(const Properties& properties) {
    if (property<std::uint64_t>(properties, "Iteration") >= start_work->to_start) {
        throw std::logic_error("a service got the properties of another");
    }
    start_work->started();
    co_return;
}

Task count_stop() {
    ++start_work->counts.stops;
    co_return;
}

class ExplicitService final : public Service {
public:
    ExplicitService(Dependencies& dependencies, Properties& properties, ServiceId) : properties_(properties) {
        dependencies.require<Logger>(*this);
    }
    Task start() override { return count_start(properties_); }
    Task stop() override { return count_stop(); }
    void add(Logger& logger, ServiceId) { logger_ = &logger; }
    void remove(Logger&, ServiceId) { logger_ = nullptr; }

private:
    Properties& properties_;
    Logger* logger_ = nullptr;
};

class ConstructedService final : public Service {
public:
    ConstructedService(Properties& properties, ServiceId, Logger& logger) : properties_(properties), logger_(logger) {}
    Task start() override { return count_start(properties_); }
    Task stop() override { return count_stop(); }

private:
    Properties& properties_;
    [[maybe_unused]] Logger& logger_;
};

Properties start_properties(std::uint64_t iteration) {
    Properties properties;
    properties.reserve(2);
    properties.emplace("Iteration", iteration);
    properties.emplace("LogLevel", 3);
    return properties;
}

}  // namespace

Outcome start(const Options& options, unsigned) {
    PriorityQueue<AnyOrder> queue;
    Manager manager(queue);
    StartWork work{&manager, {}, options.count};
    Counts others;
    start_work = &work;
    manager.insert<Registered<LoggerFactory>>({{"Counts", &others}, {"Manager", &manager}});
    manager.insert<Registered<NullFrameworkLogger, FrameworkLogger>>({{"Counts", &others}});
    for (std::uint64_t i = 0; i < options.count; ++i) {
        if (options.constructor_injection) {
            manager.insert<Constructed<ConstructedService, Logger>>(start_properties(i));
        } else {
            manager.insert<Registered<ExplicitService>>(start_properties(i));
        }
    }
    queue.run(manager);
    return {.checksum = work.counts.starts + others.starts + 3 * (work.counts.stops + others.stops)};
}

// --- start-stop: A requires B, a logger and the manager, by which it has B stopped and started again

namespace {

class Needed {
public:
    virtual ~Needed() = default;
};

struct StartStopWork {
    Manager* manager;
    std::uint64_t cycles;
    Counts of_a;
    Counts of_b;
    // Lines that their loggers have, at the last step.
    std::uint64_t lines_of_a = 0;
    std::uint64_t lines_of_b = 0;
};
thread_local StartStopWork* start_stop_work = nullptr;

// What A orders stops and starts from.
class Managing {
public:
    virtual ~Managing() = default;
    virtual Queue& queue() = 0;
};
class ManagerService final : public Service, public Managing {
public:
    ManagerService(Dependencies&, Properties&, ServiceId) {}
    Task start() override { co_return; }
    Task stop() override { co_return; }
    Queue& queue() override { return start_stop_work->manager->queue(); }
};

class B final : public Counted, public Needed {
public:
    B(Dependencies& dependencies, Properties&, ServiceId) : Counted(start_stop_work->of_b) {
        dependencies.require<Logger>(*this);
    }
    Task start() override {
        log("start");
        return Counted::start();
    }
    Task stop() override {
        log("stop");
        return Counted::stop();
    }
    void add(Logger& logger, ServiceId) { logger_ = &logger; }
    void remove(Logger&, ServiceId) { logger_ = nullptr; }

private:
    void log(std::string_view line) {
        logger_->log(line);
        start_stop_work->lines_of_b = logger_->lines();
    }

    Logger* logger_ = nullptr;
};

class A final : public Service {
public:
    A(Dependencies& dependencies, Properties&, ServiceId id) : id_(id) {
        dependencies.require<Logger>(*this);
        dependencies.require<Needed>(*this);
        dependencies.require<Managing>(*this);
    }
    Task start() override {
        StartStopWork& work = *start_stop_work;
        log("start");
        if (work.of_a.starts++ < work.cycles) {
            manager_->queue().push<Stop>(id_, priority::dependency, needed_, false);
        } else {
            manager_->queue().push<Quit>(id_, priority::usual);
        }
        co_return;
    }
    Task stop() override {
        StartStopWork& work = *start_stop_work;
        log("stop");
        if (work.of_a.stops++ < work.cycles) {
            manager_->queue().push<Start>(id_, priority::usual, needed_);
        }
        co_return;
    }
    void add(Managing& manager, ServiceId) { manager_ = &manager; }
    void remove(Managing&, ServiceId) { manager_ = nullptr; }
    void add(Logger& logger, ServiceId) { logger_ = &logger; }
    void remove(Logger&, ServiceId) { logger_ = nullptr; }
    void add(Needed&, ServiceId id) { needed_ = id; }
    void remove(Needed&, ServiceId) {}

private:
    void log(std::string_view line) {
        logger_->log(line);
        start_stop_work->lines_of_a = logger_->lines();
    }

    ServiceId id_;
    ServiceId needed_ = 0;
    Logger* logger_ = nullptr;
    Managing* manager_ = nullptr;
};

}  // namespace

Outcome start_stop(const Options& options, unsigned) {
    PriorityQueue<AnyOrder> queue;
    Manager manager(queue);
    StartStopWork work{.manager = &manager, .cycles = options.count, .of_a = {}, .of_b = {}};
    Counts others;
    start_stop_work = &work;
    manager.insert<Registered<LoggerFactory>>({{"Counts", &others}, {"Manager", &manager}});
    manager.insert<Registered<NullFrameworkLogger, FrameworkLogger>>({{"Counts", &others}});
    manager.insert<Registered<ManagerService, Managing>>({});
    manager.insert<Registered<B, Needed>>({});
    manager.insert<Registered<A>>({});
    queue.run(manager);
    return {.checksum = work.of_a.starts + 3 * work.of_b.starts + 5 * work.of_a.stops + 7 * work.of_b.stops +
                        11 * work.lines_of_a + 13 * work.lines_of_b};
}

// --- serializer: a message to JSON in a fresh buffer and back

namespace {

struct Message {
    std::uint64_t id = 0;
    std::string val;

    static constexpr auto fields = std::tuple{json::field("id", &Message::id), json::field("val", &Message::val)};
    bool operator==(const Message&) const = default;
};

// What an application gets as a service: it does not know which format is behind it.
template <class T>
class Serializer {
public:
    virtual ~Serializer() = default;
    virtual std::string write(const T& value) const = 0;
    virtual std::optional<T> read(std::string_view text) const = 0;
};

template <class T>
class JsonSerializer final : public Serializer<T> {
public:
    std::string write(const T& value) const override { return json::write(value); }
    std::optional<T> read(std::string_view text) const override { return json::read<T>(text); }
};

}  // namespace

Outcome serializer(const Options& options, unsigned) {
    const std::unique_ptr<const Serializer<Message>> messages = std::make_unique<JsonSerializer<Message>>();
    Outcome outcome;
    Message message{0, "five hundred"};
    for (std::uint64_t i = 0; i < options.count; ++i) {
        message.id = 20 + i % 64;
        const std::string text = messages->write(message);
        const std::optional<Message> back = messages->read(text);
        if (!back || *back != message) {
            throw std::runtime_error("a message did not come back as it was: " + text);
        }
        outcome.bytes += text.size();
        outcome.checksum += back->id + back->val.size();
    }
    return outcome;
}
