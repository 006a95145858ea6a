/* For programs of others whose port is written into their source: bind() and connect() to a port of 127.0.0.1 that
 * PORTS names go to another one. PORTS="8001=40123" is read once; all else is passed on as it came. Used with LD_PRELOAD, so
 * that the program stays what its authors wrote. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static unsigned from, to;

__attribute__((constructor)) static void read_ports(void)
{
    const char *ports = getenv("PORTS");
    if (ports != NULL && sscanf(ports, "%5u=%5u", &from, &to) != 2)
        from = to = 0;
}

/* The address to use in place of `asked`: `other`, filled, or `asked` itself. */
static const struct sockaddr *moved(const struct sockaddr *asked, socklen_t length, struct sockaddr_in *other)
{
    if (from == 0 || asked == NULL || length < sizeof *other || asked->sa_family != AF_INET)
        return asked;
    *other = *(const struct sockaddr_in *)asked;
    if (ntohs(other->sin_port) != from)
        return asked;
    other->sin_port = htons((in_port_t)to);
    return (const struct sockaddr *)other;
}

typedef int call(int, const struct sockaddr *, socklen_t);

int bind(int socket, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_in other;
    call *next = (call *)dlsym(RTLD_NEXT, "bind");
    return next(socket, moved(address, length, &other), length);
}

int connect(int socket, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_in other;
    call *next = (call *)dlsym(RTLD_NEXT, "connect");
    return next(socket, moved(address, length, &other), length);
}
