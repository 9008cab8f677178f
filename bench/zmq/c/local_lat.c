/* The answering end of the latency test: binds a REP socket and sends every message back. */
#include "perf.h"

int main(int argc, char **argv)
{
    struct perf_args a = parse(argc, argv);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_REP);
    check(socket != NULL, "zmq_socket");
    check(zmq_bind(socket, a.endpoint) == 0, "zmq_bind");

    zmq_msg_t msg;
    zmq_msg_init(&msg);
    for (long i = 0; i < a.warmup + a.count; i++) {
        receive(&msg, socket, a.size_bytes);
        check(zmq_msg_send(&msg, socket, 0) >= 0, "zmq_msg_send");
    }
    zmq_msg_close(&msg);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
