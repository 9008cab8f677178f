/* The sending end of the throughput test: connects a PUSH socket and sends as fast as it is let. */
#include "perf.h"

int main(int argc, char **argv)
{
    struct perf_args a = parse(argc, argv);
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, ZMQ_PUSH);
    check(socket != NULL, "zmq_socket");
    check(zmq_connect(socket, a.endpoint) == 0, "zmq_connect");

    for (long i = 0; i < a.warmup + a.count; i++) {
        zmq_msg_t msg;
        check(zmq_msg_init_size(&msg, a.size_bytes) == 0, "zmq_msg_init_size");
        check(zmq_msg_send(&msg, socket, 0) >= 0, "zmq_msg_send");
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
