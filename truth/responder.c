/* A server whose behaviour is known, and that knows when each request came and when its answer was sent.
 *
 *   responder [OPTION…]              listens on 127.0.0.1, on a free port; prints `listening PORT`
 *
 *     --port PORT          this port
 *     --delay US           answers so long after it received the request, any number at the same time (0: at once)
 *     --serial             … one at a time: it begins with the next when it has answered the last
 *     --freeze FROM:LENGTH is stopped so long, from so long after the first request; in ms; may be repeated
 *     --every PERIOD       … and again every PERIOD ms
 *     --busy               never sleeps: it asks for requests again and again
 *     --body BYTES         length of the answer's body (13)
 *     --log FILE           keeps both times of each request and writes them at the end, in ns of CLOCK_MONOTONIC:
 *                          local_port (the client's), received_ns (recv returned), answered_ns (send was called)
 *
 * While it is frozen it does nothing at all, as if stopped by SIGSTOP: what comes is received when the freeze is over,
 * an answer that is due is sent then. One thread; delays are due times in a queue, which is in order because all
 * delays are the same. A request ends with an empty line: it has no body, and several may come together.
 *
 * Standard input: `count` prints {"requests":N,"answers":N,"connections":N}, all since the start; its end ends it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <getopt.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define EVENTS 512
#define FREEZES_MAX 64
#define ROWS_EXPECTED (1 << 21)
/* So long before something is due it stops sleeping, because waking may take as long. */
#define SPIN_NS (80 * NS_PER_US)
#define LISTENER UINT32_MAX
#define COMMANDS (UINT32_MAX - 1)

struct connection {
    uint16_t port;
    uint8_t matched;      /* Bytes of the empty line that the last ones received are. */
    uint32_t generation;  /* Told apart from an earlier one on the same descriptor. */
};

struct row {
    int64_t received, answered;
    uint16_t port;
};

/* An answer that is due; its row is that of its number. */
struct due {
    int64_t at;
    size_t request;
    uint32_t fd, generation;
};

static struct connection *connections;
static size_t connections_max;
static struct row *rows;
static size_t rows_max;
static struct due *queue;
static size_t queue_first, queue_count, queue_max;
static size_t requests, answers, open_connections;

static int64_t delay, every, freeze_from[FREEZES_MAX], freeze_length[FREEZES_MAX], began;
static int freezes, serial, busy, epoll, listener;
static int64_t free_at; /* When a serial server has answered all that it has received. */
static const char *log_path;
static char answer[1 << 20];
static size_t answer_bytes;

static void *grown(void *old, size_t *max, size_t size, size_t least) {
    size_t wanted = *max == 0 ? 1 << 16 : *max;
    while (wanted <= least) wanted *= 2;
    char *new = realloc(old, wanted * size);
    if (new == NULL) die("no memory");
    memset(new + *max * size, 0, (wanted - *max) * size);
    *max = wanted;
    return new;
}

/* The end of the freeze that lasts at this time, or 0. */
static int64_t frozen_until(int64_t now) {
    if (began == 0) return 0;
    for (int i = 0; i < freezes; i++) {
        int64_t since = now - began - freeze_from[i];
        if (since < 0) continue;
        int64_t round = every > 0 ? since / every * every : 0;
        if (since - round < freeze_length[i]) return began + freeze_from[i] + round + freeze_length[i];
    }
    return 0;
}

/* Returns when it is not frozen, with the time. */
static int64_t thawed(void) {
    int64_t now = now_ns();
    for (int64_t end; freezes > 0 && (end = frozen_until(now)) != 0; now = now_ns()) {
        struct timespec until = {.tv_sec = end / NS_PER_S, .tv_nsec = end % NS_PER_S};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return now;
}

static void send_answer(uint32_t fd, size_t request) {
    int64_t now = freezes > 0 ? thawed() : log_path != NULL ? now_ns() : 0;
    if (log_path != NULL) rows[request].answered = now;
    ssize_t sent = send((int)fd, answer, answer_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == (ssize_t)answer_bytes) answers++;
    else if (sent >= 0 || (errno != EPIPE && errno != ECONNRESET)) die("an answer could not be sent whole");
}

static void queue_answer(int64_t at, uint32_t fd, size_t request) {
    if (queue_count == queue_max) {
        struct due *old = queue;
        size_t old_max = queue_max;
        queue = NULL;
        queue_max = 0;
        queue = grown(NULL, &queue_max, sizeof *queue, queue_count);
        for (size_t i = 0; i < queue_count; i++) queue[i] = old[(queue_first + i) % old_max];
        queue_first = 0;
        free(old);
    }
    queue[(queue_first + queue_count++) % queue_max] =
        (struct due){.at = at, .request = request, .fd = fd, .generation = connections[fd].generation};
}

static void answer_due(void) {
    while (queue_count > 0) {
        const struct due *first = &queue[queue_first];
        if (first->at > now_ns()) return;
        if (connections[first->fd].generation == first->generation) send_answer(first->fd, first->request);
        queue_first = (queue_first + 1) % queue_max;
        queue_count--;
    }
}

static void received_request(uint32_t fd, int64_t now) {
    size_t request = requests++;
    if (began == 0) began = now;
    if (log_path != NULL) {
        if (request >= rows_max) rows = grown(rows, &rows_max, sizeof *rows, request);
        rows[request] = (struct row){.received = now, .port = connections[fd].port};
    }
    if (delay == 0) {
        send_answer(fd, request);
        return;
    }
    int64_t begins = serial && free_at > now ? free_at : now;
    free_at = begins + delay;
    queue_answer(free_at, fd, request);
}

static void close_connection(uint32_t fd) {
    connections[fd].generation++;
    open_connections--;
    close((int)fd);
}

static void receive(uint32_t fd) {
    static const char end[4] = "\r\n\r\n";
    static char buffer[1 << 16];
    ssize_t got = recv((int)fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        close_connection(fd);
        return;
    }
    int64_t now = log_path != NULL || delay > 0 || freezes > 0 ? now_ns() : 1;
    struct connection *own = &connections[fd];
    for (ssize_t i = 0; i < got; i++) {
        own->matched = buffer[i] == end[own->matched] ? own->matched + 1 : buffer[i] == '\r';
        if (own->matched < sizeof end) continue;
        own->matched = 0;
        received_request(fd, now);
    }
}

static void accept_all(void) {
    for (;;) {
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        int fd = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED)) return;
        if (fd < 0) die("cannot accept");
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if ((size_t)fd >= connections_max)
            connections = grown(connections, &connections_max, sizeof *connections, (size_t)fd);
        connections[fd].port = ntohs(peer.sin_port);
        connections[fd].matched = 0;
        open_connections++;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
    }
}

static void write_rows(void) {
    FILE *file = fopen(log_path, "w");
    if (file == NULL) die("cannot write %s", log_path);
    fputs("local_port,received_ns,answered_ns\n", file);
    for (size_t i = 0; i < requests; i++)
        fprintf(file, "%u,%lld,%lld\n", rows[i].port, (long long)rows[i].received, (long long)rows[i].answered);
    if (fclose(file) != 0) die("cannot write %s", log_path);
}

/* Does what standard input says; returns whether it goes on. */
static int command(void) {
    static char line[256];
    static size_t length;
    ssize_t got = read(STDIN_FILENO, line + length, sizeof line - length);
    if (got <= 0) return 0;
    length += (size_t)got;
    for (char *end; (end = memchr(line, '\n', length)) != NULL;) {
        printf("{\"requests\":%zu,\"answers\":%zu,\"connections\":%zu}\n", requests, answers, open_connections);
        length -= (size_t)(end + 1 - line);
        memmove(line, end + 1, length);
    }
    return 1;
}

static int wait_for(struct epoll_event *events) {
    struct timespec none = {0}, until_due, *wait = NULL;
    if (queue_count > 0) {
        int64_t left = queue[queue_first].at - now_ns() - SPIN_NS;
        left = left < 0 ? 0 : left;
        until_due = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
        wait = &until_due;
    }
    int ready = epoll_pwait2(epoll, events, EVENTS, busy ? &none : wait, NULL);
    if (ready < 0 && errno != EINTR) die("epoll_pwait2");
    return ready;
}

static void serve(void) {
    for (;;) {
        struct epoll_event events[EVENTS];
        int ready = wait_for(events);
        for (int i = 0; i < ready; i++) {
            uint32_t fd = events[i].data.u32;
            if (freezes > 0) thawed();
            if (delay > 0) answer_due();
            if (fd == LISTENER) accept_all();
            else if (fd != COMMANDS) receive(fd);
            else if (!command()) return;
        }
        if (delay > 0) answer_due();
    }
}

static uint16_t listen_on(uint16_t port) {
    int on = 1;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t length = sizeof own;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listener < 0 || bind(listener, (struct sockaddr *)&own, sizeof own) != 0 || listen(listener, 65535) != 0)
        die("cannot listen on port %u", port);
    getsockname(listener, (struct sockaddr *)&own, &length);
    return ntohs(own.sin_port);
}

static void read_freeze(const char *text) {
    char *colon = strchr(text, ':');
    if (colon == NULL || freezes == FREEZES_MAX) die("%s is not FROM:LENGTH, or one too many", text);
    *colon = '\0';
    freeze_from[freezes] = number(text, 0) * NS_PER_MS;
    freeze_length[freezes++] = number(colon + 1, 1) * NS_PER_MS;
}

static uint16_t read_options(int argc, char **argv, size_t *body) {
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},  {"delay", required_argument, NULL, 'd'},
        {"serial", no_argument, NULL, 's'},      {"freeze", required_argument, NULL, 'f'},
        {"every", required_argument, NULL, 'e'}, {"busy", no_argument, NULL, 'b'},
        {"body", required_argument, NULL, 'n'},  {"log", required_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    uint16_t port = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p': port = (uint16_t)number(optarg, 1); break;
        case 'd': delay = number(optarg, 0) * NS_PER_US; break;
        case 's': serial = 1; break;
        case 'f': read_freeze(optarg); break;
        case 'e': every = number(optarg, 1) * NS_PER_MS; break;
        case 'b': busy = 1; break;
        case 'n': *body = (size_t)number(optarg, 0); break;
        case 'l': log_path = optarg; break;
        default: exit(2);
        }
    }
    if (optind != argc) die("%s is none of the options", argv[optind]);
    return port;
}

int main(int argc, char **argv) {
    size_t body = 13;
    uint16_t port = read_options(argc, argv, &body);
    if (body > sizeof answer - 256) die("a body may have %zu bytes", sizeof answer - 256);
    answer_bytes = (size_t)snprintf(answer, sizeof answer,
                                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", body);
    memset(answer + answer_bytes, 'x', body);
    answer_bytes += body;

    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    /* The kernel may otherwise wake it 50 µs late, to wake it together with others. */
    prctl(PR_SET_TIMERSLACK, 1);
    connections = grown(NULL, &connections_max, sizeof *connections, 0);
    /* All of it now: to move it while it grows would be a pause that is not among those asked for. */
    if (log_path != NULL) rows = grown(NULL, &rows_max, sizeof *rows, ROWS_EXPECTED);

    epoll = epoll_create1(EPOLL_CLOEXEC);
    port = listen_on(port);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = LISTENER};
    struct epoll_event commands = {.events = EPOLLIN, .data.u32 = COMMANDS};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &commands) != 0)
        die("epoll_ctl (standard input must be a pipe)");
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("listening %u\n", port);
    serve();
    if (log_path != NULL) write_rows();
    return 0;
}
