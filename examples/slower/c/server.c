// A server that does rounds of arithmetic for each answer, and so many percent more of its time as it is told.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BASE = 5000, PERCENT = 78, DESCRIPTORS = 65536, HEAD = 4096 };
// About one percent of what an answer takes is PERCENT rounds, found by timing two numbers of them.

static const char ANSWER[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 13\r\n\r\nHello, World!";
static const char NOT_FOUND[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

struct connection {
    size_t length;
    char head[HEAD];
};
static struct connection *connections[DESCRIPTORS];

// Rounds of xorshift, each waiting for the one before.
static uint64_t rounds(long count, uint64_t seed) {
    for (long i = 0; i < count; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
    }
    return seed;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

// Answers every whole request that has come. False: the connection is over.
static int serve(int fd, long count) {
    struct connection *of = connections[fd];
    ssize_t got = recv(fd, of->head + of->length, HEAD - 1 - of->length, 0);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return 0;
    of->length += (size_t)got;
    of->head[of->length] = 0;
    char *end;
    while ((end = strstr(of->head, "\r\n\r\n"))) {
        // Zero never comes out, so that the rounds cannot be left out.
        if (rounds(count, 88172645463325252) == 0) abort();
        int known = strncmp(of->head, "GET /hello ", 11) == 0;
        const char *answer = known ? ANSWER : NOT_FOUND;
        size_t length = strlen(answer);
        if (send(fd, answer, length, MSG_NOSIGNAL) != (ssize_t)length) return 0;
        of->length -= (size_t)(end + 4 - of->head);
        memmove(of->head, end + 4, of->length + 1);
    }
    return of->length < HEAD - 1;
}

int main(int argc, char **argv) {
    long port = 0, slower = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--port")) port = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--slower")) slower = atol(argv[i + 1]);
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 65535)) fail("listen");
    int queue = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    if (epoll_ctl(queue, EPOLL_CTL_ADD, listener, &event)) fail("epoll_ctl");
    for (;;) {
        int ready = epoll_wait(queue, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                if (!serve(fd, BASE + slower * PERCENT)) close(fd);
                continue;
            }
            while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                if (fd >= DESCRIPTORS) fail("too many connections");
                if (!connections[fd] && !(connections[fd] = malloc(sizeof **connections))) fail("malloc");
                connections[fd]->length = 0;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                event.data.fd = fd;
                if (epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
            }
        }
    }
}
