// Events of Ichor that are counted where they arrive: its own event benchmark has no handler, so that nobody sees how
// many of its events are dispatched. Built on an unchanged libichor, and written for this folder.
//
//   seen COUNT THREADS any|ordered same|last
//
// Each of THREADS pushes COUNT events of the default priority, all before the first is dispatched, and a request to quit:
// `same`, with their priority, as Ichor's benchmark has it; `last`, with one behind all of them. `any` is Ichor's default
// queue, `ordered` the one that keeps equals in the order of pushing. The clock covers the queue from before it is made
// until after it is gone.

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ichor/DependencyManager.h>
#include <ichor/ScopedServiceProxy.h>
#include <ichor/coroutines/AsyncGenerator.h>
#include <ichor/dependency_management/AdvancedService.h>
#include <ichor/dependency_management/DependencyRegister.h>
#include <ichor/event_queues/PriorityQueue.h>
#include <ichor/events/Event.h>
#include <ichor/events/InternalEvents.h>
#include <ichor/services/logging/LoggerFactory.h>
#include <ichor/services/logging/NullFrameworkLogger.h>
#include <ichor/services/logging/NullLogger.h>
#include <memory>
#include <thread>
#include <vector>

namespace {

struct Asked {
    uint64_t count{};
    uint64_t threads{};
    bool ordered{};
    bool quit_last{};
};

// What one thread has seen; written by that thread alone until it is joined.
struct Seen {
    uint64_t handled{};
    uint64_t checksum{};
};

struct Numbered final : public Ichor::Event {
    Numbered(uint64_t event_id, Ichor::ServiceIdType from, uint64_t urgency, uint64_t own) noexcept
        : Event(event_id, from, urgency), number(own) {}
    ~Numbered() final = default;

    [[nodiscard]] std::string_view get_name() const noexcept final { return NAME; }
    [[nodiscard]] Ichor::NameHashType get_type() const noexcept final { return TYPE; }

    uint64_t number;
    static constexpr Ichor::NameHashType TYPE = Ichor::typeNameHash<Numbered>();
    static constexpr std::string_view NAME = Ichor::typeName<Numbered>();
};

// Set by each thread before its queue starts: services are made by the framework, and told nothing of their own.
thread_local Asked asked;
thread_local Seen *seen;

// What it depends on is what the service of Ichor's benchmark depends on: how far a queue that keeps no order among equals
// comes before it meets the request to quit depends on what went through it before.
class Counter final : public Ichor::AdvancedService<Counter> {
  public:
    Counter(Ichor::DependencyRegister &needs, Ichor::Properties properties) : AdvancedService(std::move(properties)) {
        needs.registerDependency<Ichor::v1::ILogger>(this, Ichor::DependencyFlags::REQUIRED);
        needs.registerDependency<Ichor::IEventQueue>(this, Ichor::DependencyFlags::REQUIRED);
    }

    Ichor::AsyncGenerator<Ichor::IchorBehaviour> handleEvent(Numbered const &event) {
        seen->handled += 1;
        seen->checksum += event.number * (seen->handled % 7 + 1);
        co_return {};
    }

  private:
    friend Ichor::DependencyRegister;

    Ichor::Task<tl::expected<void, Ichor::StartError>> start() final {
        handler = Ichor::GetThreadLocalManager().registerEventHandler<Numbered, Counter>(this, this);
        for (uint64_t number = 1; number <= asked.count; ++number)
            queue->pushEvent<Numbered>(getServiceId(), number);
        if (asked.quit_last)
            queue->pushPrioritisedEvent<Ichor::QuitEvent>(getServiceId(), Ichor::INTERNAL_EVENT_PRIORITY + 1);
        else
            queue->pushEvent<Ichor::QuitEvent>(getServiceId());
        co_return {};
    }

    Ichor::Task<void> stop() final {
        handler.reset();
        co_return;
    }

    void addDependencyInstance(Ichor::ScopedServiceProxy<Ichor::v1::ILogger *>, Ichor::IService &) {}
    void removeDependencyInstance(Ichor::ScopedServiceProxy<Ichor::v1::ILogger *>, Ichor::IService &) {}
    void addDependencyInstance(Ichor::ScopedServiceProxy<Ichor::IEventQueue *> own, Ichor::IService &) { queue = std::move(own); }
    void removeDependencyInstance(Ichor::ScopedServiceProxy<Ichor::IEventQueue *>, Ichor::IService &) { queue.reset(); }

    Ichor::ScopedServiceProxy<Ichor::IEventQueue *> queue{};
    Ichor::EventHandlerRegistration handler{};
};

template <typename Queue>
void run() {
    auto queue = std::make_unique<Queue>();
    auto &manager = queue->createManager();
    using Loggers = Ichor::v1::LoggerFactory<Ichor::v1::NullLogger>;
    manager.template createServiceManager<Loggers, Ichor::v1::ILoggerFactory>();
    manager.template createServiceManager<Ichor::v1::NullFrameworkLogger, Ichor::IFrameworkLogger>();
    manager.template createServiceManager<Counter>(Ichor::Properties{});
    queue->start(Ichor::DoNotCaptureSigInt);
}

void one_thread(Asked const &work, Seen *result) {
    asked = work;
    seen = result;
    if (work.ordered)
        run<Ichor::OrderedPriorityQueue>();
    else
        run<Ichor::PriorityQueue>();
}

bool number(char const *text, uint64_t &value) {
    auto end = text + std::strlen(text);
    auto [stop, error] = std::from_chars(text, end, value);
    return error == std::errc{} && stop == end && value > 0;
}

} // namespace

int main(int argc, char *argv[]) {
    Asked work;
    bool right = argc == 5 && number(argv[1], work.count) && number(argv[2], work.threads);
    if (right) {
        work.ordered = std::strcmp(argv[3], "ordered") == 0;
        work.quit_last = std::strcmp(argv[4], "last") == 0;
        right = (work.ordered || std::strcmp(argv[3], "any") == 0) && (work.quit_last || std::strcmp(argv[4], "same") == 0);
    }
    if (!right) {
        std::fputs("usage: seen COUNT THREADS any|ordered same|last\n", stderr);
        return 2;
    }
    auto start = std::chrono::steady_clock::now();
    std::vector<Seen> all(work.threads);
    if (work.threads == 1) {
        one_thread(work, &all[0]);
    } else {
        std::vector<std::thread> threads;
        for (auto &result : all)
            threads.emplace_back(one_thread, work, &result);
        for (auto &thread : threads)
            thread.join();
    }
    auto elapsed = std::chrono::steady_clock::now() - start;
    Seen sum;
    for (auto const &one : all) {
        sum.handled += one.handled;
        sum.checksum += one.checksum;
    }
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count();
    std::printf("{\"measure\":\"events pushed\",\"threads\":%llu,\"count\":%llu,\"elapsed_ns\":%lld,\"bytes\":0,\"checksum\":\"%llu\","
                "\"tallies\":{\"handled\":%llu}}\n",
                static_cast<unsigned long long>(work.threads), static_cast<unsigned long long>(work.count * work.threads),
                static_cast<long long>(ns), static_cast<unsigned long long>(sum.checksum),
                static_cast<unsigned long long>(sum.handled));
    return 0;
}
