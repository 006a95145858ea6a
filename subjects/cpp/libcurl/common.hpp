// What both clients share: what they are asked to do, how they count, and the line that they print.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <curl/curl.h>

using Clock = std::chrono::steady_clock;

// How long requests that are under way at the end may take to end.
constexpr std::chrono::seconds drain{5};

// Latencies in ns, in 64 KiB whatever their number: what is told of one is at most 1/128 above it.
class Histogram {
  public:
    void record(uint64_t value) {
        counts_[bucket(value)]++;
        count_++;
        sum_ += static_cast<double>(value);
        squares_ += static_cast<double>(value) * static_cast<double>(value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    void add(const Histogram &other) {
        for (size_t i = 0; i < counts_.size(); i++) counts_[i] += other.counts_[i];
        count_ += other.count_;
        sum_ += other.sum_;
        squares_ += other.squares_;
        min_ = std::min(min_, other.min_);
        max_ = std::max(max_, other.max_);
    }

    std::string json() const {
        if (count_ == 0) return "null";
        const double count = static_cast<double>(count_), mean = sum_ / count;
        const double variance = std::max(squares_ / count - mean * mean, 0.0);
        char text[512];
        std::snprintf(text, sizeof text,
                      R"({"count":%ju,"min":%ju,"mean":%.3f,"stdev":%.3f,"p50":%ju,"p75":%ju,"p90":%ju,"p99":%ju,)"
                      R"("p99_9":%ju,"p99_99":%ju,"max":%ju})",
                      static_cast<uintmax_t>(count_), static_cast<uintmax_t>(min_), mean, std::sqrt(variance), at(50),
                      at(75), at(90), at(99), at(99.9), at(99.99), static_cast<uintmax_t>(max_));
        return text;
    }

  private:
    static constexpr unsigned steps = 128;

    static size_t bucket(uint64_t value) {
        const int shift = std::max(static_cast<int>(std::bit_width(value)) - 8, 0);
        return static_cast<size_t>(shift) * steps + (value >> shift);
    }

    static uint64_t highest(size_t index) {
        if (index < 2 * steps) return index;
        const size_t shift = index / steps - 1;
        return ((index - shift * steps + 1) << shift) - 1;
    }

    uintmax_t at(double percentile) const {
        const auto rank = std::max<uint64_t>(static_cast<uint64_t>(std::ceil(static_cast<double>(count_) * percentile / 100)), 1);
        uint64_t seen = 0;
        for (size_t i = 0; i < counts_.size(); i++) {
            seen += counts_[i];
            if (seen >= rank) return std::min(highest(i), max_);
        }
        return 0;
    }

    std::vector<uint64_t> counts_ = std::vector<uint64_t>(58 * steps);
    uint64_t count_ = 0, min_ = UINT64_MAX, max_ = 0;
    double sum_ = 0, squares_ = 0;
};

// What requests came to.
struct Tally {
    uint64_t answered = 0, in_flight = 0, bytes = 0, connect_failed = 0;
    std::map<std::string, uint64_t> failed;
    Histogram latencies;

    void count(CURLcode result, long status, uint64_t body, Clock::time_point started, Clock::time_point deadline) {
        const auto ended = Clock::now();
        // A connection that could not be made is no request.
        if (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST) {
            connect_failed++;
        } else if (ended > deadline) {
            in_flight++;
        } else if (result != CURLE_OK) {
            failed[curl_easy_strerror(result)]++;
        } else if (status < 200 || status > 299) {
            failed["status"]++;
        } else {
            answered++;
            bytes += body;
            latencies.record(static_cast<uint64_t>(std::chrono::nanoseconds(ended - started).count()));
        }
    }

    void add(const Tally &other) {
        answered += other.answered;
        in_flight += other.in_flight;
        bytes += other.bytes;
        connect_failed += other.connect_failed;
        for (const auto &[kind, count] : other.failed) failed[kind] += count;
        latencies.add(other.latencies);
    }
};

struct Words {
    std::string url;
    unsigned connections = 1, threads = 1, seconds = 1;
};

[[noreturn]] inline void refuse(const char *reason) {
    std::fprintf(stderr, "%s\n", reason);
    std::exit(2);
}

inline Words words(int count, char **values) {
    Words words;
    for (int i = 1; i < count; i += 2) {
        const std::string name = values[i];
        if (i + 1 == count) refuse("each word needs a value");
        const char *value = values[i + 1];
        if (name == "--url") {
            words.url = value;
            continue;
        }
        unsigned *number = name == "--connections" ? &words.connections
                           : name == "--threads"   ? &words.threads
                           : name == "--seconds"   ? &words.seconds
                                                   : nullptr;
        if (!number) refuse("words: --url, --connections, --threads, --seconds");
        char *end = nullptr;
        const unsigned long parsed = std::strtoul(value, &end, 10);
        if (*end || parsed < 1 || parsed > 1'000'000) refuse("a number is from 1 to 1000000");
        *number = static_cast<unsigned>(parsed);
    }
    if (words.url.rfind("http://", 0) != 0) refuse("--url is not http://HOST:PORT/PATH");
    return words;
}

inline void print(const Words &words, const Tally &tally) {
    uint64_t failed = 0;
    std::string kinds;
    for (const auto &[kind, count] : tally.failed) {
        failed += count;
        kinds += (kinds.empty() ? "\"" : ",\"") + kind + "\":" + std::to_string(count);
    }
    std::printf(R"({"measure":"requests","threads":%u,"count":%ju,"elapsed_ns":%ju,"bytes":%ju,"client":{"connections":%u,)"
                R"("failed":%ju,"failed_by_kind":{%s},"in_flight":%ju,"latency":%s},"tallies":{"connect_failed":%ju}})"
                "\n",
                words.threads, static_cast<uintmax_t>(tally.answered), uintmax_t{words.seconds} * 1'000'000'000,
                static_cast<uintmax_t>(tally.bytes), words.connections, static_cast<uintmax_t>(failed), kinds.c_str(),
                static_cast<uintmax_t>(tally.in_flight), tally.latencies.json().c_str(),
                static_cast<uintmax_t>(tally.connect_failed));
}

// Runs `drive(connections, deadline)` on each thread, with its share of the connections.
inline void on_threads(const Words &words, const std::function<void(unsigned, Clock::time_point)> &drive) {
    const auto deadline = Clock::now() + std::chrono::seconds(words.seconds);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < words.threads; i++) {
        const unsigned share = words.connections / words.threads + (i < words.connections % words.threads);
        threads.emplace_back(drive, share, deadline);
    }
    for (auto &thread : threads) thread.join();
}

using Easy = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;
