/* What the instruments share: the clock that all of their times are on, and how they end with an error. */
#ifndef TRUTH_CLOCK_H
#define TRUTH_CLOCK_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define NS_PER_US 1000LL

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* Prints the message, with the system's error where there is one, and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...) {
    int error = errno;
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    if (error != 0) fprintf(stderr, ": %s", strerror(error));
    fputc('\n', stderr);
    exit(1);
}

/* A whole number of at least `min`, or the end of the program. */
static inline int64_t number(const char *text, int64_t min) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < min) {
        errno = 0;
        die("%s is not a whole number of at least %lld", text, (long long)min);
    }
    return value;
}

#endif
