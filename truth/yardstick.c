/* The least that a client on epoll must do: it sends a request, waits, receives as many bytes as the first answer
 * had, and sends the next. It parses nothing, so that what another client costs beside it is that client's own.
 *
 *   yardstick [-c CONNECTIONS] [-d MILLISECONDS] [-n REQUESTS] [-l FILE] ADDRESS PORT
 *
 * Ends after the time (1000 ms) or the requests, whichever comes first, and prints one line of JSON: requests that
 * were answered, the window and the process's CPU time in it (both in ns), and enough to know the run by.
 * With -l it keeps the times of each request and writes them as `prony load --trace` does, so that what judges
 * traces can be judged by a client whose times are simple.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define EVENTS 512
#define ANSWER_BYTES_MAX (1 << 20)
/* The first answer is whole when nothing more came for so long. */
#define QUIET_MS 100
#define ANSWER_WAIT_MS 10000

struct connection {
    int fd;
    uint16_t port;
    size_t received;
    int64_t sent_from, sent_to, first_byte;
};

struct row {
    uint32_t connection;
    uint16_t port;
    int64_t sent_from, sent_to, first_byte, last_byte, within;
};

static const char request[] = "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
static struct connection *connections;
static uint32_t count = 1;
static int epoll;
static char buffer[ANSWER_BYTES_MAX];
static struct row *rows;
static size_t rows_count, rows_max;
static const char *log_path;

static void open_connection(struct connection *own, const struct sockaddr_in *peer) {
    int on = 1;
    struct sockaddr_in local;
    socklen_t length = sizeof local;
    own->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (own->fd < 0) die("no socket");
    if (connect(own->fd, (const struct sockaddr *)peer, sizeof *peer) != 0) die("cannot connect");
    setsockopt(own->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    getsockname(own->fd, (struct sockaddr *)&local, &length);
    own->port = ntohs(local.sin_port);
}

static void send_request(struct connection *own) {
    own->received = 0;
    if (log_path != NULL) own->sent_from = now_ns();
    ssize_t sent = send(own->fd, request, sizeof request - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != (ssize_t)(sizeof request - 1)) die("a request could not be sent whole");
    if (log_path != NULL) own->sent_to = now_ns();
}

/* Bytes of an answer, asked for on a connection of its own: all that comes before the server is quiet. */
static size_t answer_length(const struct sockaddr_in *peer) {
    struct connection probe, *own = &probe;
    open_connection(own, peer);
    struct pollfd ready = {.fd = own->fd, .events = POLLIN};
    size_t length = 0;
    if (send(own->fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0) die("cannot send");
    while (poll(&ready, 1, length == 0 ? ANSWER_WAIT_MS : QUIET_MS) == 1) {
        ssize_t got = recv(own->fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got <= 0) die("no first answer");
        length += (size_t)got;
    }
    errno = 0;
    if (length == 0) die("no first answer in time");
    close(own->fd);
    return length;
}

static void keep(const struct connection *own, uint32_t index, int64_t asked, int64_t received) {
    if (rows_count == rows_max) {
        rows_max = rows_max == 0 ? 1 << 20 : rows_max * 2;
        rows = realloc(rows, rows_max * sizeof *rows);
        if (rows == NULL) die("no memory for the times");
    }
    rows[rows_count++] = (struct row){.connection = index,
                                      .port = own->port,
                                      .sent_from = own->sent_from,
                                      .sent_to = own->sent_to,
                                      .first_byte = own->first_byte,
                                      .last_byte = received,
                                      .within = received - asked};
}

static void write_rows(void) {
    FILE *file = fopen(log_path, "w");
    if (file == NULL) die("cannot write %s", log_path);
    fputs("connection,local_port,intended_ns,submitted_ns,submitted_within_ns,first_byte_ns,last_byte_ns,"
          "picked_up_within_ns,processed_ns,status\n",
          file);
    for (size_t i = 0; i < rows_count; i++) {
        const struct row *own = &rows[i];
        fprintf(file, "%u,%u,%lld,%lld,%lld,%lld,%lld,%lld,%lld,200\n", own->connection, own->port,
                (long long)own->sent_from, (long long)own->sent_from, (long long)(own->sent_to - own->sent_from),
                (long long)own->first_byte, (long long)own->last_byte, (long long)own->within,
                (long long)own->last_byte);
    }
    if (fclose(file) != 0) die("cannot write %s", log_path);
}

static void open_all(const struct sockaddr_in *peer) {
    connections = calloc(count, sizeof *connections);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (connections == NULL || epoll < 0) die("no memory");
    for (uint32_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        open_connection(&connections[i], peer);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections[i].fd, &event) != 0) die("epoll_ctl");
    }
}

/* Keeps a request outstanding on each connection until the time or the number is reached, and waits for the answers
 * of all. Returns how many came. */
static int64_t drive(size_t length, int64_t end, int64_t requests_max) {
    int64_t sent = 0, answered = 0, asked = now_ns();
    for (uint32_t i = 0; i < count && sent < requests_max; i++, sent++) send_request(&connections[i]);
    while (answered < sent) {
        struct epoll_event events[EVENTS];
        int64_t before = now_ns();
        int ready = epoll_wait(epoll, events, EVENTS, ANSWER_WAIT_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) die("no answer within %d ms", ANSWER_WAIT_MS);
        for (int i = 0; i < ready; i++) {
            uint32_t index = events[i].data.u32;
            struct connection *own = &connections[index];
            ssize_t got = recv(own->fd, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got <= 0) die("a connection ended");
            int64_t received = log_path == NULL ? 0 : now_ns();
            if (own->received == 0) own->first_byte = received;
            own->received += (size_t)got;
            if (own->received < length) continue;
            answered++;
            /* What this wait brought was not there when the last one began, or that would have brought it. */
            if (log_path != NULL) keep(own, index, asked, received);
            if (before < end && sent < requests_max) {
                send_request(own);
                sent++;
            }
        }
        /* Where there were more than one wait takes, some of the rest lie there for longer. */
        if (ready < EVENTS) asked = before;
    }
    return answered;
}

int main(int argc, char **argv) {
    int64_t window = 1000 * NS_PER_MS, requests_max = INT64_MAX;
    for (int option; (option = getopt(argc, argv, "c:d:n:l:")) != -1;) {
        switch (option) {
        case 'c': count = (uint32_t)number(optarg, 1); break;
        case 'd': window = number(optarg, 1) * NS_PER_MS; break;
        case 'n': requests_max = number(optarg, 1); break;
        case 'l': log_path = optarg; break;
        default: return 2;
        }
    }
    struct sockaddr_in peer = {.sin_family = AF_INET};
    if (argc - optind != 2 || inet_pton(AF_INET, argv[optind], &peer.sin_addr) != 1) {
        fputs("yardstick [-c CONNECTIONS] [-d MILLISECONDS] [-n REQUESTS] [-l FILE] ADDRESS PORT\n", stderr);
        return 2;
    }
    peer.sin_port = htons((uint16_t)number(argv[optind + 1], 1));
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    size_t length = answer_length(&peer);
    open_all(&peer);
    int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), began = now_ns();
    int64_t answered = drive(length, began + window, requests_max);
    int64_t ended = now_ns();
    cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"requests\":%lld,\"requests_with_probe\":%lld,\"window_ns\":%lld,\"cpu_ns\":%lld,\"connections\":%u,"
           "\"answer_bytes\":%zu}\n",
           (long long)answered, (long long)answered + 1, (long long)(ended - began), (long long)cpu, count, length);
    if (log_path != NULL) write_rows();
    return 0;
}
