/* The asking end of the latency test: connects a REQ socket, plays ping-pong, prints the mean one-way time. */
#include "perf.h"

static void play(void *socket, zmq_msg_t *msg, size_t size_bytes, long count)
{
    for (long i = 0; i < count; i++) {
        check(zmq_msg_send(msg, socket, 0) >= 0, "zmq_msg_send");
        receive(msg, socket, size_bytes);
    }
}

int main(int argc, char **argv)
{
    struct perf_args a = parse(argc, argv);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_REQ);
    check(socket != NULL, "zmq_socket");
    check(zmq_connect(socket, a.endpoint) == 0, "zmq_connect");

    zmq_msg_t msg;
    check(zmq_msg_init_size(&msg, a.size_bytes) == 0, "zmq_msg_init_size");
    memset(zmq_msg_data(&msg), 'x', a.size_bytes);
    play(socket, &msg, a.size_bytes, a.warmup);
    double start_us = now_us();
    play(socket, &msg, a.size_bytes, a.count);
    double elapsed_us = now_us() - start_us;

    printf("message size: %zu [B]\nroundtrip count: %ld\nmean latency: %.3f [us]\n", a.size_bytes, a.count,
           elapsed_us / (a.count * 2.0));
    zmq_msg_close(&msg);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
