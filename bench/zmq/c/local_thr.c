/* The receiving end of the throughput test: binds a PULL socket, counts messages, prints their rate. */
#include "perf.h"

static void drain(void *socket, zmq_msg_t *msg, size_t size_bytes, long count)
{
    for (long i = 0; i < count; i++)
        receive(msg, socket, size_bytes);
}

int main(int argc, char **argv)
{
    struct perf_args a = parse(argc, argv);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_PULL);
    check(socket != NULL, "zmq_socket");
    check(zmq_bind(socket, a.endpoint) == 0, "zmq_bind");

    zmq_msg_t msg;
    zmq_msg_init(&msg);
    drain(socket, &msg, a.size_bytes, a.warmup + 1);
    double start_us = now_us();
    drain(socket, &msg, a.size_bytes, a.count - 1);
    double elapsed_us = now_us() - start_us;

    double rate = (a.count - 1) / elapsed_us * 1e6;
    printf("message size: %zu [B]\nmessage count: %ld\nmean throughput: %.0f [msg/s]\nmean throughput: %.3f [Mb/s]\n",
           a.size_bytes, a.count, rate, rate * a.size_bytes * 8 / 1e6);
    zmq_msg_close(&msg);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
