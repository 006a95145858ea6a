// libcurl as a library of asynchronous requests wraps it, in the manner of liblifthttp: a request is an object that is handed
// to the event loop of a thread through a queue with a lock; the loop (libuv) takes an easy handle from a pool, sets all
// options, and gives the whole response back, body in a string and header fields in a map; completions are counted under one
// lock for all threads. Written from a description of how that library works, not from its text.

#include <mutex>
#include <string_view>
#include <unordered_map>

#include <uv.h>

#include "common.hpp"

namespace {

struct Request {
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers;
    std::chrono::milliseconds timeout{60'000}, connect_timeout{30'000};
    long redirects_max = 0;
    bool verify = true;
};

struct Response {
    CURLcode result = CURLE_OK;
    long status = 0;
    std::unordered_map<std::string, std::string> headers;
    std::string body;
    std::chrono::microseconds took{0};
};

using OnComplete = std::function<void(std::unique_ptr<Request>, Response)>;

struct Pending {
    std::unique_ptr<Request> request;
    OnComplete on_complete;
};

// A request that is under way, with the easy handle that it has for that time.
struct Exchange {
    Easy easy{nullptr, curl_easy_cleanup};
    std::unique_ptr<Request> request;
    OnComplete on_complete;
    Response response;
    curl_slist *fields = nullptr;
};

class EventLoop {
  public:
    explicit EventLoop(unsigned connections) {
        uv_loop_init(&loop_);
        uv_async_init(&loop_, &async_, [](uv_async_t *handle) { static_cast<EventLoop *>(handle->data)->accept(); });
        uv_timer_init(&loop_, &timer_);
        uv_timer_init(&loop_, &last_);
        async_.data = timer_.data = last_.data = this;
        curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
        curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
        curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
    }

    ~EventLoop() {
        for (auto &[easy, exchange] : running_) release(*exchange, true);
        pool_.clear();
        multi_.reset();
        close_all();
        uv_loop_close(&loop_);
    }

    // From any thread.
    void start(std::unique_ptr<Request> request, OnComplete on_complete) {
        {
            std::lock_guard lock(mutex_);
            pending_.push_back({std::move(request), std::move(on_complete)});
        }
        uv_async_send(&async_);
    }

    // Until `stop`, or until `last`.
    void run(std::chrono::milliseconds last) {
        uv_timer_start(&last_, [](uv_timer_t *handle) { uv_stop(handle->loop); }, static_cast<uint64_t>(last.count()), 0);
        uv_run(&loop_, UV_RUN_DEFAULT);
    }

    void stop() { uv_stop(&loop_); }

  private:
    void accept() {
        {
            std::lock_guard lock(mutex_);
            accepted_.swap(pending_);
        }
        for (auto &pending : accepted_) begin(std::move(pending));
        accepted_.clear();
    }

    void begin(Pending pending) {
        auto exchange = std::make_unique<Exchange>();
        if (pool_.empty()) {
            exchange->easy.reset(curl_easy_init());
        } else {
            exchange->easy = std::move(pool_.back());
            pool_.pop_back();
        }
        exchange->request = std::move(pending.request);
        exchange->on_complete = std::move(pending.on_complete);
        prepare(*exchange);
        CURL *easy = exchange->easy.get();
        running_.emplace(easy, std::move(exchange));
        curl_multi_add_handle(multi_.get(), easy);
    }

    static void prepare(Exchange &exchange) {
        CURL *easy = exchange.easy.get();
        const Request &request = *exchange.request;
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
        curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request.redirects_max > 0 ? 1L : 0L);
        curl_easy_setopt(easy, CURLOPT_MAXREDIRS, request.redirects_max);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, request.verify ? 1L : 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, request.verify ? 2L : 0L);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange.response);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange.response);
        for (const auto &[name, value] : request.headers) {
            exchange.fields = curl_slist_append(exchange.fields, (name + ": " + value).c_str());
        }
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.fields);
    }

    // Takes the handle away from the exchange. `last`: it is not needed again.
    void release(Exchange &exchange, bool last) {
        CURL *easy = exchange.easy.get();
        curl_multi_remove_handle(multi_.get(), easy);
        curl_easy_reset(easy);
        curl_slist_free_all(exchange.fields);
        exchange.fields = nullptr;
        if (!last) pool_.push_back(std::move(exchange.easy));
    }

    void reap() {
        int left = 0;
        while (CURLMsg *message = curl_multi_info_read(multi_.get(), &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            const auto found = running_.find(message->easy_handle);
            const std::unique_ptr<Exchange> exchange = std::move(found->second);
            running_.erase(found);
            Response &response = exchange->response;
            curl_off_t took = 0;
            response.result = message->data.result;
            curl_easy_getinfo(exchange->easy.get(), CURLINFO_RESPONSE_CODE, &response.status);
            curl_easy_getinfo(exchange->easy.get(), CURLINFO_TOTAL_TIME_T, &took);
            response.took = std::chrono::microseconds(took);
            release(*exchange, false);
            exchange->on_complete(std::move(exchange->request), std::move(response));
        }
    }

    // libuv's watcher of a socket that curl has named.
    struct Watch {
        uv_poll_t poll;
        EventLoop *loop;
        curl_socket_t fd;
    };

    static int on_socket(CURL *, curl_socket_t fd, int what, void *data, void *known) {
        auto *self = static_cast<EventLoop *>(data);
        auto *watch = static_cast<Watch *>(known);
        if (what == CURL_POLL_REMOVE) {
            if (!watch) return 0;
            uv_poll_stop(&watch->poll);
            uv_close(reinterpret_cast<uv_handle_t *>(&watch->poll),
                     [](uv_handle_t *handle) { delete static_cast<Watch *>(handle->data); });
            curl_multi_assign(self->multi_.get(), fd, nullptr);
            return 0;
        }
        if (!watch) {
            watch = new Watch{{}, self, fd};
            uv_poll_init_socket(&self->loop_, &watch->poll, fd);
            watch->poll.data = watch;
            curl_multi_assign(self->multi_.get(), fd, watch);
        }
        const int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
        uv_poll_start(&watch->poll, events, on_ready);
        return 0;
    }

    static void on_ready(uv_poll_t *handle, int status, int events) {
        const auto &watch = *static_cast<Watch *>(handle->data);
        EventLoop &self = *watch.loop;
        const int mask = status < 0 ? CURL_CSELECT_ERR
                                    : (events & UV_READABLE ? CURL_CSELECT_IN : 0) |
                                          (events & UV_WRITABLE ? CURL_CSELECT_OUT : 0);
        int running = 0;
        curl_multi_socket_action(self.multi_.get(), watch.fd, mask, &running);
        self.reap();
    }

    static int on_timer(CURLM *, long ms, void *data) {
        auto *self = static_cast<EventLoop *>(data);
        if (ms < 0) {
            uv_timer_stop(&self->timer_);
        } else {
            uv_timer_start(&self->timer_, on_timeout, static_cast<uint64_t>(ms), 0);
        }
        return 0;
    }

    static void on_timeout(uv_timer_t *handle) {
        auto &self = *static_cast<EventLoop *>(handle->data);
        int running = 0;
        curl_multi_socket_action(self.multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
        self.reap();
    }

    static size_t on_header(char *data, size_t size, size_t count, void *target) {
        const std::string_view line(data, size * count);
        const size_t colon = line.find(':');
        if (colon != line.npos) {
            const size_t from = line.find_first_not_of(" \t", colon + 1), to = line.find_last_not_of(" \t\r\n");
            auto &headers = static_cast<Response *>(target)->headers;
            headers.emplace(line.substr(0, colon), from == line.npos || to < from ? "" : line.substr(from, to - from + 1));
        }
        return line.size();
    }

    static size_t on_body(char *data, size_t size, size_t count, void *target) {
        static_cast<Response *>(target)->body.append(data, size * count);
        return size * count;
    }

    void close_all() {
        for (uv_handle_t *handle : {reinterpret_cast<uv_handle_t *>(&async_), reinterpret_cast<uv_handle_t *>(&timer_),
                                    reinterpret_cast<uv_handle_t *>(&last_)}) {
            uv_close(handle, nullptr);
        }
        uv_run(&loop_, UV_RUN_DEFAULT);
    }

    uv_loop_t loop_;
    uv_async_t async_;
    uv_timer_t timer_, last_;
    std::mutex mutex_;
    std::vector<Pending> pending_, accepted_;
    std::vector<Easy> pool_;
    std::unordered_map<CURL *, std::unique_ptr<Exchange>> running_;
    Multi multi_{curl_multi_init(), curl_multi_cleanup};
};

// What all threads count into.
std::mutex counts_mutex;
Tally counts;

// The connections of one thread: as many requests at a time, each started by the end of the one before.
class Driver {
  public:
    Driver(unsigned connections, Clock::time_point deadline) : loop_(connections), deadline_(deadline) {}

    void run(const Words &words, unsigned connections) {
        for (unsigned i = 0; i < connections; i++) {
            auto request = std::make_unique<Request>();
            request->url = words.url;
            start(std::move(request));
        }
        loop_.run(std::chrono::ceil<std::chrono::milliseconds>(deadline_ + drain - Clock::now()));
        std::lock_guard lock(counts_mutex);
        counts.in_flight += busy_;
    }

  private:
    void start(std::unique_ptr<Request> request) {
        const auto started = Clock::now();
        if (started < deadline_) {
            busy_++;
            loop_.start(std::move(request), [this, started](std::unique_ptr<Request> back, Response response) {
                {
                    std::lock_guard lock(counts_mutex);
                    counts.count(response.result, response.status, response.body.size(), started, deadline_);
                }
                busy_--;
                start(std::move(back));
            });
        } else if (busy_ == 0) {
            loop_.stop();
        }
    }

    EventLoop loop_;
    Clock::time_point deadline_;
    unsigned busy_ = 0;
};

} // namespace

int main(int count, char **values) {
    const Words asked = words(count, values);
    curl_global_init(CURL_GLOBAL_ALL);
    on_threads(asked, [&](unsigned connections, Clock::time_point deadline) {
        Driver(connections, deadline).run(asked, connections);
    });
    print(asked, counts);
}
