// The works: each is done on one thread, from the making of its queue to the end of it.
#pragma once

#include <cstdint>
#include <vector>

// What sees the events of the work `event`.
enum class Handling { coroutine, plain, none };

struct Options {
    std::uint64_t count = 0;
    unsigned threads = 1;
    bool constructor_injection = false;
    std::uint64_t priorities = 1;
    Handling handling = Handling::coroutine;
    // Bytes that each event carries: 0 or 32.
    unsigned payload = 0;
    // Whether events of equal priority keep their order.
    bool in_order = true;
    std::uint64_t deadline_ns = 2'000'000;
};

struct Outcome {
    std::uint64_t checksum = 0;
    std::uint64_t bytes = 0;
    // Of the realtime work: how long each run took, and whether the thread had realtime scheduling.
    std::vector<std::uint64_t> durations_ns{};
    bool realtime = false;
};

// They throw std::runtime_error if something did not come out as it must.
Outcome coroutine(const Options& options, unsigned thread);
Outcome event(const Options& options, unsigned thread);
Outcome start(const Options& options, unsigned thread);
Outcome start_stop(const Options& options, unsigned thread);
Outcome serializer(const Options& options, unsigned thread);
Outcome realtime(const Options& options, unsigned thread);
