// One work, on one thread or on many, and what came of it as a line of JSON.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "works.hpp"

namespace {

constexpr unsigned threads_max = 1024;
constexpr std::size_t missed_max = 1000;

struct Work {
    std::string_view name;
    std::string_view measure;
    Outcome (*run)(const Options&, unsigned thread);
};

constexpr Work works[] = {
    {"coroutine", "coroutines", coroutine}, {"event", "events", event},
    {"start", "services", start},           {"start-stop", "cycles", start_stop},
    {"serializer", "messages", serializer}, {"realtime", "runs", realtime},
};

struct Usage : std::runtime_error {
    using runtime_error::runtime_error;
};

std::uint64_t number(std::string_view word, std::string_view text, std::uint64_t max) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > max) {
        throw Usage(std::string(word) + " takes a whole number from 1 to " + std::to_string(max) + ", not '" +
                    std::string(text) + "'");
    }
    return value;
}

bool one_of(std::string_view word, std::string_view text, std::string_view first, std::string_view second) {
    if (text != first && text != second) {
        throw Usage(std::string(word) + " is " + std::string(first) + " or " + std::string(second) + ", not '" +
                    std::string(text) + "'");
    }
    return text == second;
}

Handling handling(std::string_view text) {
    if (text == "coroutine") {
        return Handling::coroutine;
    }
    if (text == "plain") {
        return Handling::plain;
    }
    if (text == "none") {
        return Handling::none;
    }
    throw Usage("--handler is coroutine, plain or none, not '" + std::string(text) + "'");
}

const Work& find_work(std::string_view name) {
    const auto* const found = std::ranges::find(works, name, &Work::name);
    if (found == std::end(works)) {
        throw Usage("no work named '" + std::string(name) + "'");
    }
    return *found;
}

struct Asked {
    const Work* work = nullptr;
    Options options;
};

Asked parse(const std::vector<std::string_view>& words) {
    Asked asked;
    Options& options = asked.options;
    for (std::size_t i = 0; i < words.size(); i += 2) {
        const std::string_view word = words[i];
        if (i + 1 == words.size()) {
            throw Usage(std::string(word) + " lacks its value");
        }
        const std::string_view value = words[i + 1];
        if (word == "--work") {
            asked.work = &find_work(value);
        } else if (word == "--count") {
            options.count = number(word, value, UINT32_MAX);
        } else if (word == "--threads") {
            options.threads = static_cast<unsigned>(number(word, value, threads_max));
        } else if (word == "--injection") {
            options.constructor_injection = one_of(word, value, "explicit", "constructor");
        } else if (word == "--priorities") {
            options.priorities = one_of(word, value, "1", "8") ? 8 : 1;
        } else if (word == "--handler") {
            options.handling = handling(value);
        } else if (word == "--payload") {
            options.payload = one_of(word, value, "0", "32") ? 32 : 0;
        } else if (word == "--through") {
            // There is no queue of tasks beside that of the events.
            if (value != "events") {
                throw Usage("--through is events, not '" + std::string(value) + "'");
            }
        } else if (word == "--order") {
            options.in_order = !one_of(word, value, "push", "any");
        } else if (word == "--deadline-us") {
            options.deadline_ns = 1000 * number(word, value, 1'000'000'000);
        } else {
            throw Usage("unknown word '" + std::string(word) + "'");
        }
    }
    if (asked.work == nullptr || options.count == 0) {
        throw Usage("--work and --count are needed");
    }
    return asked;
}

std::vector<Outcome> run(const Asked& asked) {
    const Options& options = asked.options;
    if (options.threads == 1) {
        return {asked.work->run(options, 0)};
    }
    std::vector<Outcome> outcomes(options.threads);
    std::vector<std::exception_ptr> errors(options.threads);
    {
        std::vector<std::jthread> threads;
        for (unsigned i = 0; i < options.threads; ++i) {
            threads.emplace_back([&, i] {
                try {
                    outcomes[i] = asked.work->run(options, i);
                } catch (...) {
                    errors[i] = std::current_exception();
                }
            });
        }
    }
    for (const auto& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
    return outcomes;
}

// The highest value of the bucket of a value, where buckets keep three significant decimal digits.
std::uint64_t bucket(std::uint64_t value) {
    std::uint64_t width = 1;
    while (value / width >= 1000) {
        width *= 10;
    }
    return value / width * width + width - 1;
}

void print_durations(const std::vector<std::uint64_t>& durations, std::uint64_t deadline_ns) {
    const auto [min, max] = std::ranges::minmax(durations);
    const auto sum = std::accumulate(durations.begin(), durations.end(), std::uint64_t{0});
    std::map<std::uint64_t, std::uint64_t> histogram;
    std::string missed;
    std::uint64_t missed_count = 0;
    for (std::size_t i = 0; i < durations.size(); ++i) {
        ++histogram[bucket(durations[i])];
        if (durations[i] > deadline_ns && ++missed_count <= missed_max) {
            missed += (missed.empty() ? "" : ",") + ("{\"run\":" + std::to_string(i)) +
                      ",\"ns\":" + std::to_string(durations[i]) + "}";
        }
    }
    std::cout << ",\"durations\":{\"count\":" << durations.size() << ",\"min_ns\":" << min
              << ",\"mean_ns\":" << sum / durations.size() << ",\"max_ns\":" << max
              << ",\"deadline_ns\":" << deadline_ns << ",\"missed\":[" << missed
              << "],\"missed_count\":" << missed_count
              << ",\"histogram\":{\"schema\":1,\"unit\":\"ns\",\"digits\":3,\"counts\":[";
    const char* before = "";
    for (const auto& [highest, count] : histogram) {
        std::cout << std::exchange(before, ",") << '[' << highest << ',' << count << ']';
    }
    std::cout << "]}}";
}

void print(const Asked& asked, const std::vector<Outcome>& outcomes, std::uint64_t elapsed_ns) {
    const Options& options = asked.options;
    Outcome sum;
    for (const Outcome& outcome : outcomes) {
        sum.checksum += outcome.checksum;
        sum.bytes += outcome.bytes;
        sum.durations_ns.insert(sum.durations_ns.end(), outcome.durations_ns.begin(), outcome.durations_ns.end());
    }
    // The order of what has no order, and the results of a job of one's own, can be compared with nothing.
    const bool comparable = asked.work->run != realtime && (asked.work->run != event || options.in_order);
    std::cout << "{\"measure\":\"" << asked.work->measure << "\",\"threads\":" << options.threads
              << ",\"count\":" << options.count * options.threads << ",\"elapsed_ns\":" << elapsed_ns
              << ",\"bytes\":" << sum.bytes << ",\"checksum\":\"" << (comparable ? std::to_string(sum.checksum) : "")
              << '"';
    if (asked.work->run == realtime) {
        const bool all = std::ranges::all_of(outcomes, &Outcome::realtime);
        std::cout << ",\"realtime\":" << (all ? "true" : "false");
        print_durations(sum.durations_ns, options.deadline_ns);
    }
    std::cout << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const Asked asked = parse({argv + 1, argv + argc});
        const auto begun = std::chrono::steady_clock::now();
        const std::vector<Outcome> outcomes = run(asked);
        const auto elapsed = std::chrono::steady_clock::now() - begun;
        print(asked, outcomes, static_cast<std::uint64_t>(std::chrono::nanoseconds(elapsed).count()));
    } catch (const Usage& error) {
        std::cerr << "coroutines: " << error.what() << std::endl;
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "coroutines: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
