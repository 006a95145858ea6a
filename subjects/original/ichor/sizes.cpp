// Works of Ichor in any size: its own benchmarks have one, from which no growth follows. Built on an unchanged libichor, and
// written for this folder.
//
//   sizes start|start-stop COUNT
//
// `start`: COUNT services with two properties and a required logger are inserted and started; when the last one has started
// the queue quits, which stops them. `start-stop`: one service requires another, which is stopped and started COUNT times, so
// that the first stops and starts with it. The clock covers the queue from before it is made until after it is gone.

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ichor/DependencyManager.h>
#include <ichor/ScopedServiceProxy.h>
#include <ichor/dependency_management/AdvancedService.h>
#include <ichor/dependency_management/DependencyRegister.h>
#include <ichor/event_queues/PriorityQueue.h>
#include <ichor/events/InternalEvents.h>
#include <ichor/services/logging/LoggerFactory.h>
#include <ichor/services/logging/NullFrameworkLogger.h>
#include <ichor/services/logging/NullLogger.h>
#include <memory>

namespace {

using Ichor::v1::ILogger;
using Started = Ichor::Task<tl::expected<void, Ichor::StartError>>;

uint64_t wanted{};
uint64_t done{};

class Single final : public Ichor::AdvancedService<Single> {
  public:
    Single(Ichor::DependencyRegister &needs, Ichor::Properties properties) : AdvancedService(std::move(properties)) {
        needs.registerDependency<ILogger>(this, Ichor::DependencyFlags::REQUIRED);
    }

  private:
    friend Ichor::DependencyRegister;

    Started start() final {
        done += 1;
        if (done == wanted)
            Ichor::GetThreadLocalEventQueue().pushEvent<Ichor::QuitEvent>(getServiceId());
        co_return {};
    }

    Ichor::Task<void> stop() final { co_return; }

    void addDependencyInstance(Ichor::ScopedServiceProxy<ILogger *> own, Ichor::IService &) { logger = std::move(own); }
    void removeDependencyInstance(Ichor::ScopedServiceProxy<ILogger *>, Ichor::IService &) { logger.reset(); }

    Ichor::ScopedServiceProxy<ILogger *> logger{};
};

struct IBelow {};

class Below final : public IBelow, public Ichor::AdvancedService<Below> {
  public:
    Below(Ichor::DependencyRegister &needs, Ichor::Properties properties) : AdvancedService(std::move(properties)) {
        needs.registerDependency<ILogger>(this, Ichor::DependencyFlags::REQUIRED);
    }

  private:
    friend Ichor::DependencyRegister;

    Started start() final { co_return {}; }
    Ichor::Task<void> stop() final { co_return; }

    void addDependencyInstance(Ichor::ScopedServiceProxy<ILogger *>, Ichor::IService &) {}
    void removeDependencyInstance(Ichor::ScopedServiceProxy<ILogger *>, Ichor::IService &) {}
};

class Above final : public Ichor::AdvancedService<Above> {
  public:
    Above(Ichor::DependencyRegister &needs, Ichor::Properties properties) : AdvancedService(std::move(properties)) {
        needs.registerDependency<ILogger>(this, Ichor::DependencyFlags::REQUIRED);
        needs.registerDependency<IBelow>(this, Ichor::DependencyFlags::REQUIRED);
        needs.registerDependency<Ichor::DependencyManager>(this, Ichor::DependencyFlags::REQUIRED);
    }

  private:
    friend Ichor::DependencyRegister;
    friend Ichor::DependencyManager;

    // Its first start is no cycle.
    Started start() final {
        auto &queue = Ichor::GetThreadLocalEventQueue();
        if (done == wanted)
            queue.pushEvent<Ichor::QuitEvent>(getServiceId());
        else
            queue.pushPrioritisedEvent<Ichor::StopServiceEvent>(getServiceId(), Ichor::INTERNAL_DEPENDENCY_EVENT_PRIORITY, below);
        is_ending = done == wanted;
        done += 1;
        co_return {};
    }

    Ichor::Task<void> stop() final {
        if (!is_ending)
            Ichor::GetThreadLocalEventQueue().pushEvent<Ichor::StartServiceEvent>(getServiceId(), below);
        co_return;
    }

    void addDependencyInstance(Ichor::ScopedServiceProxy<ILogger *>, Ichor::IService &) {}
    void removeDependencyInstance(Ichor::ScopedServiceProxy<ILogger *>, Ichor::IService &) {}
    void addDependencyInstance(Ichor::ScopedServiceProxy<IBelow *>, Ichor::IService &service) { below = service.getServiceId(); }
    void removeDependencyInstance(Ichor::ScopedServiceProxy<IBelow *>, Ichor::IService &) {}
    void addDependencyInstance(Ichor::ScopedServiceProxy<Ichor::DependencyManager *>, Ichor::IService &) {}
    void removeDependencyInstance(Ichor::ScopedServiceProxy<Ichor::DependencyManager *>, Ichor::IService &) {}

    Ichor::ServiceIdType below{0};
    bool is_ending{};
};

void run(bool is_start) {
    auto queue = std::make_unique<Ichor::PriorityQueue>();
    auto &manager = queue->createManager();
    using Loggers = Ichor::v1::LoggerFactory<Ichor::v1::NullLogger>;
    manager.createServiceManager<Loggers, Ichor::v1::ILoggerFactory>();
    manager.createServiceManager<Ichor::v1::NullFrameworkLogger, Ichor::IFrameworkLogger>();
    if (is_start) {
        for (uint64_t number = 0; number < wanted; ++number)
            manager.createServiceManager<Single>(Ichor::Properties{
                {"Number", Ichor::v1::make_any<uint64_t>(number)},
                {"LogLevel", Ichor::v1::make_any<Ichor::LogLevel>(Ichor::LogLevel::LOG_WARN)},
            });
    } else {
        manager.createServiceManager<Below, IBelow>(Ichor::Properties{});
        manager.createServiceManager<Above>(Ichor::Properties{});
    }
    queue->start(Ichor::DoNotCaptureSigInt);
}

} // namespace

int main(int argc, char *argv[]) {
    bool is_start = argc == 3 && std::strcmp(argv[1], "start") == 0;
    bool right = is_start || (argc == 3 && std::strcmp(argv[1], "start-stop") == 0);
    if (right) {
        auto end = argv[2] + std::strlen(argv[2]);
        auto [stop, error] = std::from_chars(argv[2], end, wanted);
        right = error == std::errc{} && stop == end && wanted > 0;
    }
    if (!right) {
        std::fputs("usage: sizes start|start-stop COUNT\n", stderr);
        return 2;
    }
    auto start = std::chrono::steady_clock::now();
    run(is_start);
    auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
    auto made = is_start ? done : done - 1;
    if (made != wanted) {
        std::fprintf(stderr, "sizes: %llu of %llu were done\n", static_cast<unsigned long long>(made), static_cast<unsigned long long>(wanted));
        return 1;
    }
    std::printf("{\"measure\":\"%s\",\"threads\":1,\"count\":%llu,\"elapsed_ns\":%lld,\"bytes\":0,\"checksum\":\"\"}\n",
                is_start ? "services" : "cycles", static_cast<unsigned long long>(wanted), static_cast<long long>(ns));
    return 0;
}
