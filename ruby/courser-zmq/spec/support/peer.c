/*
 * The other side of the interoperation specs, on libzmq's C API alone:
 *
 *   peer TYPE bind|connect ENDPOINT STEP...
 *
 * A step is `option=NUMBER:VALUE` with a string, `number=NUMBER:VALUE` with an integer, `send=PART|PART`, `receive`, which
 * prints the parts of a message on one line, or `echo`, which sends the message received last. Options stand before the
 * socket is bound or connected. With `bind` the endpoint that was chosen is printed first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define PARTS_MAX 64

static zmq_msg_t parts[PARTS_MAX];
static int part_count;

static void check(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
        exit(1);
    }
}

static void set_option(void *socket, char *text, int is_number)
{
    char *value = strchr(text, ':') + 1;
    int number = atoi(value);
    int rc = is_number ? zmq_setsockopt(socket, atoi(text), &number, sizeof number)
                       : zmq_setsockopt(socket, atoi(text), value, strlen(value));
    check(rc == 0, text);
}

static void send_parts(void *socket, char *text)
{
    for (char *part = text, *next; part; part = next) {
        next = strchr(part, '|');
        if (next)
            *next++ = 0;
        check(zmq_send(socket, part, strlen(part), next ? ZMQ_SNDMORE : 0) >= 0, "send");
    }
}

static void receive(void *socket)
{
    int more = 1;
    for (part_count = 0; more; part_count++) {
        check(part_count < PARTS_MAX, "too many parts");
        zmq_msg_init(&parts[part_count]);
        check(zmq_msg_recv(&parts[part_count], socket, 0) >= 0, "receive");
        more = zmq_msg_more(&parts[part_count]);
        printf("%.*s%s", (int) zmq_msg_size(&parts[part_count]), (char *) zmq_msg_data(&parts[part_count]),
               more ? "|" : "\n");
    }
    fflush(stdout);
}

static void echo(void *socket)
{
    for (int i = 0; i < part_count; i++)
        check(zmq_msg_send(&parts[i], socket, i + 1 < part_count ? ZMQ_SNDMORE : 0) >= 0, "echo");
}

static void attach(void *socket, const char *how, const char *endpoint)
{
    if (strcmp(how, "connect") == 0) {
        check(zmq_connect(socket, endpoint) == 0, "connect");
        return;
    }
    char chosen[256];
    size_t size = sizeof chosen;
    check(zmq_bind(socket, endpoint) == 0, "bind");
    check(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, chosen, &size) == 0, "endpoint");
    puts(chosen);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    void *context = zmq_ctx_new();
    void *socket = zmq_socket(context, atoi(argv[1]));
    int step = 4;
    for (; step < argc; step++) {
        if (strncmp(argv[step], "option=", 7) == 0)
            set_option(socket, argv[step] + 7, 0);
        else if (strncmp(argv[step], "number=", 7) == 0)
            set_option(socket, argv[step] + 7, 1);
        else
            break;
    }
    attach(socket, argv[2], argv[3]);
    for (; step < argc; step++) {
        if (strncmp(argv[step], "send=", 5) == 0)
            send_parts(socket, argv[step] + 5);
        else if (strcmp(argv[step], "receive") == 0)
            receive(socket);
        else if (strcmp(argv[step], "echo") == 0)
            echo(socket);
        else
            return 2;
    }
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
