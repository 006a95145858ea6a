// The realtime work: a fixed job, each run scheduled by the one before, on a thread that nothing else should delay.

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <syncstream>

#include "manager.hpp"
#include "works.hpp"

using namespace manner;

namespace {

constexpr int fifo_priority = 20;

struct Job final : EventOf<Job> {
    using EventOf::EventOf;
};

// A search in the past of a signal for what is most like its present, as speech coders do: integers only, no
// memory beyond the first-level cache, no branch that depends on time. About 150 us on a server of 2023.
class Search {
public:
    Search() {
        std::uint32_t state = 1;
        for (auto& sample : signal_) {
            state = state * 1664525 + 1013904223;
            sample = static_cast<std::int32_t>(state >> 18) - 8192;
        }
    }

    std::uint64_t run() const {
        std::uint64_t best = 0;
        std::int64_t best_score = 0;
        for (std::size_t lag = 1; lag <= lags; ++lag) {
            std::int64_t score = 0;
            for (std::size_t i = lags; i < signal_.size(); ++i) {
                score += std::int64_t{signal_[i]} * signal_[i - lag];
            }
            if (score > best_score) {
                best_score = score;
                best = lag;
            }
        }
        return best ^ static_cast<std::uint64_t>(best_score);
    }

private:
    static constexpr std::size_t lags = 320;
    std::array<std::int32_t, 320 + 925> signal_;
};

void warn(const char* what, int error) {
    std::osyncstream(std::cerr) << "coroutines: " << what << ": " << std::strerror(error) << "; going on without\n";
}

// Pins the thread to one of the cores that it may use, from the last downwards.
bool pin(unsigned thread) {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    unsigned skip = thread % static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
    for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
        if (CPU_ISSET(core, &allowed) && skip-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(core, &one);
            return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
        }
    }
    return false;
}

bool become_realtime(unsigned thread) {
    const bool pinned = pin(thread);
    if (!pinned) {
        warn("the thread cannot be pinned", errno);
    }
    const bool locked = mlockall(MCL_CURRENT | MCL_FUTURE) == 0;
    if (!locked) {
        warn("memory cannot be locked", errno);
    }
    const sched_param parameters{.sched_priority = fifo_priority};
    const int refused = pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters);
    if (refused != 0) {
        warn("no SCHED_FIFO", refused);
    }
    return pinned && locked && refused == 0;
}

}  // namespace

Outcome realtime(const Options& options, unsigned thread) {
    using clock = std::chrono::steady_clock;
    Outcome outcome;
    outcome.realtime = become_realtime(thread);
    outcome.durations_ns.resize(options.count);  // touched here, not while it is measured
    const Search search;
    const std::uint64_t expected = search.run();
    PriorityQueue<AnyOrder> queue;
    Manager manager(queue);
    std::uint64_t runs = 0;
    bool right = true;
    manager.handle(Job::TYPE, [&](const Event&) -> Task {
        const auto begun = clock::now();
        right &= search.run() == expected;
        outcome.durations_ns[runs++] = static_cast<std::uint64_t>((clock::now() - begun).count());
        if (runs < options.count) {
            queue.push<Job>(0, 10);
        } else {
            queue.push<Quit>(0, priority::usual);
        }
        co_return;
    });
    queue.push<Job>(0, 10);
    queue.run(manager);
    if (!right) {
        throw std::runtime_error("a run of the job came to another result");
    }
    return outcome;
}
