/* What the four reference tools share: argument parsing, a monotonic clock, and an exit that names the failing call. */
#ifndef COURSER_ZMQ_PERF_H
#define COURSER_ZMQ_PERF_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

static inline void check(int ok, const char *call)
{
    if (!ok) {
        fprintf(stderr, "%s: %s\n", call, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* The arguments of every tool: ENDPOINT SIZE_BYTES COUNT [WARMUP_COUNT]. */
struct perf_args {
    const char *endpoint;
    size_t size_bytes;
    long count;
    long warmup;
};

static inline struct perf_args parse(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s ENDPOINT SIZE_BYTES COUNT [WARMUP_COUNT]\n", argv[0]);
        exit(2);
    }
    struct perf_args a = {argv[1], strtoul(argv[2], NULL, 10), atol(argv[3]), argc > 4 ? atol(argv[4]) : 0};
    return a;
}

/* One blocking receive into `msg`, which must have the expected size. */
static inline void receive(zmq_msg_t *msg, void *socket, size_t size_bytes)
{
    check(zmq_msg_recv(msg, socket, 0) >= 0, "zmq_msg_recv");
    if (zmq_msg_size(msg) != size_bytes) {
        fprintf(stderr, "message of %zu bytes, expected %zu\n", zmq_msg_size(msg), size_bytes);
        exit(1);
    }
}

#endif
