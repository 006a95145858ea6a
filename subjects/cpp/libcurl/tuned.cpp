// libcurl as one writes it for speed: each handle's options are set once, curl_multi_socket_action on epoll, and bodies are
// counted where they arrive.

#include <sys/epoll.h>
#include <unistd.h>

#include "common.hpp"

namespace {

constexpr int events_max = 256;

struct Slot {
    Easy easy{curl_easy_init(), curl_easy_cleanup};
    Clock::time_point started;
    uint64_t body = 0;
    bool busy = false;
};

class Loop {
  public:
    Loop(const Words &words, unsigned connections, Clock::time_point deadline) : deadline_(deadline), slots_(connections) {
        if (epoll_ < 0 || !multi_) refuse("no epoll or no multi handle");
        curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
        curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
        curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(connections));
        curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(connections));
        for (auto &slot : slots_) prepare(slot, words);
    }

    ~Loop() {
        for (auto &slot : slots_) curl_multi_remove_handle(multi_.get(), slot.easy.get());
        close(epoll_);
    }

    Tally run() {
        for (auto &slot : slots_) start(slot);
        while (busy_ > 0 && Clock::now() < deadline_ + drain) turn();
        tally_.in_flight += busy_;
        return std::move(tally_);
    }

  private:
    void prepare(Slot &slot, const Words &words) {
        CURL *easy = slot.easy.get();
        curl_easy_setopt(easy, CURLOPT_URL, words.url.c_str());
        curl_easy_setopt(easy, CURLOPT_PRIVATE, &slot);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &slot);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, this);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 16L << 10);
    }

    void start(Slot &slot) {
        slot.started = Clock::now();
        if (slot.started >= deadline_) return;
        slot.body = 0;
        slot.busy = true;
        busy_++;
        curl_multi_add_handle(multi_.get(), slot.easy.get());
    }

    // One turn: wait, tell curl what is ready, start anew what has ended.
    void turn() {
        epoll_event events[events_max];
        const int ready = epoll_wait(epoll_, events, events_max, patience_ms());
        int running = 0;
        for (int i = 0; i < ready; i++) {
            const int fd = events[i].data.fd;
            if (!wanted_[fd]) {
                forget(fd);
                continue;
            }
            const bool broken = events[i].events & (EPOLLERR | EPOLLHUP);
            const int mask = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                             (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) | (broken ? CURL_CSELECT_ERR : 0);
            curl_multi_socket_action(multi_.get(), fd, mask, &running);
        }
        if (timer_set_ && Clock::now() >= timer_) {
            timer_set_ = false;
            curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
        }
        reap();
    }

    int patience_ms() const {
        auto until = Clock::now() < deadline_ ? deadline_ : deadline_ + drain;
        if (timer_set_) until = std::min(until, timer_);
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        return static_cast<int>(std::max<int64_t>(left, 0));
    }

    void reap() {
        int left = 0;
        while (CURLMsg *message = curl_multi_info_read(multi_.get(), &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            CURL *easy = message->easy_handle;
            const CURLcode result = message->data.result;
            Slot *slot = nullptr;
            long status = 0;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, &slot);
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
            tally_.count(result, status, slot->body, slot->started, deadline_);
            curl_multi_remove_handle(multi_.get(), easy);
            slot->busy = false;
            busy_--;
            start(*slot);
        }
    }

    void forget(int fd) {
        epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
        registered_[fd] = 0;
    }

    // curl takes interest in a socket away between two requests. It stays registered, so that reusing a connection costs no
    // system call; if something happens to it meanwhile, `turn` forgets it.
    static int on_socket(CURL *, curl_socket_t fd, int what, void *data, void *) {
        auto &self = *static_cast<Loop *>(data);
        const auto at = static_cast<size_t>(fd);
        if (at >= self.registered_.size()) {
            self.registered_.resize(at + 64);
            self.wanted_.resize(at + 64);
        }
        self.wanted_[at] = what != CURL_POLL_REMOVE;
        if (what == CURL_POLL_REMOVE) return 0;
        const uint32_t mask = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
        if (self.registered_[at] == mask) return 0;
        epoll_event event{};
        event.events = mask;
        event.data.fd = fd;
        epoll_ctl(self.epoll_, self.registered_[at] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
        self.registered_[at] = mask;
        return 0;
    }

    static int on_close(void *data, curl_socket_t fd) {
        auto &self = *static_cast<Loop *>(data);
        if (static_cast<size_t>(fd) < self.registered_.size()) self.registered_[fd] = self.wanted_[fd] = 0;
        return close(fd);
    }

    static int on_timer(CURLM *, long ms, void *data) {
        auto &self = *static_cast<Loop *>(data);
        self.timer_set_ = ms >= 0;
        if (ms >= 0) self.timer_ = Clock::now() + std::chrono::milliseconds(ms);
        return 0;
    }

    static size_t on_body(char *, size_t size, size_t count, void *data) {
        static_cast<Slot *>(data)->body += size * count;
        return size * count;
    }

    int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    Clock::time_point deadline_, timer_;
    bool timer_set_ = false;
    std::vector<uint32_t> registered_;
    std::vector<char> wanted_;
    unsigned busy_ = 0;
    Tally tally_;
    // The order matters at the end: curl closes its connections through `on_close`.
    Multi multi_{curl_multi_init(), curl_multi_cleanup};
    std::vector<Slot> slots_;
};

} // namespace

int main(int count, char **values) {
    const Words asked = words(count, values);
    curl_global_init(CURL_GLOBAL_ALL);
    std::vector<Tally> tallies(asked.threads);
    std::atomic<unsigned> next{0};
    on_threads(asked, [&](unsigned connections, Clock::time_point deadline) {
        tallies[next++] = Loop(asked, connections, deadline).run();
    });
    Tally sum;
    for (const auto &tally : tallies) sum.add(tally);
    print(asked, sum);
}
