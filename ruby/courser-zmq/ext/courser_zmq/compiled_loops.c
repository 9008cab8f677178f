/*
 * The loops around libzmq's calls, compiled: what takes one or three calls through FFI for each message takes one for
 * as many messages as are there.
 *
 * No function here waits, and none releases the interpreter's lock. One that finds nothing, or meets an error, says so
 * with nil or by stopping short, and the caller goes on with the plain call through FFI, which waits or tells the error.
 *
 * libzmq is not linked: `setup` gets the addresses of its functions from the library that FFI has loaded.
 */
#include <ruby.h>
#include <ruby/encoding.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#define DONTWAIT 1
#define SNDMORE 2
/* A received message larger than this is freed as soon as it was copied, and not by the next receive. */
#define KEEP_BYTES_MAX 65536
/* One batch stops when it has so many bytes. */
#define BATCH_BYTES_MAX (1 << 20)
/* After so many messages, other threads and signal handlers get their turn. */
#define SENDS_BETWEEN_CHECKS 256

/* As large and as aligned as libzmq's, the same in every version since 4.1.1. */
typedef union {
    unsigned char bytes[64];
    void *aligned;
} zmq_msg_t;

static int (*msg_init)(zmq_msg_t *);
static int (*msg_close)(zmq_msg_t *);
static int (*msg_recv)(zmq_msg_t *, void *, int);
static void *(*msg_data)(zmq_msg_t *);
static int (*msg_more)(const zmq_msg_t *);
static size_t (*msg_size)(const zmq_msg_t *);
static int (*msg_send)(zmq_msg_t *, void *, int);
static int (*string_send)(void *, const void *, size_t, int);

/* What was received last. It holds nothing that is needed once Ruby code runs again, so one is enough for all threads;
 * and where making a string fails, the next receive frees it. */
static zmq_msg_t inbox;

static ID id_native, id_kept, id_address;

static void *
address_of(VALUE number)
{
    return (void *)(uintptr_t)NUM2ULL(number);
}

static int
receive_part(void *socket)
{
    return msg_recv(&inbox, socket, DONTWAIT);
}

/* The bytes of a received message: libzmq's answer is an int, and INT_MAX for all that are larger. */
static long
size_of(int answer)
{
    return answer < INT_MAX ? answer : (long)msg_size(&inbox);
}

static void
free_if_large(long size)
{
    if (size > KEEP_BYTES_MAX) {
        msg_close(&inbox);
        msg_init(&inbox);
    }
}

static VALUE
part_as_string(int answer)
{
    long size = size_of(answer);
    VALUE string = rb_str_new(msg_data(&inbox), size);
    free_if_large(size);
    return string;
}

/* Appends the parts that a message still has. They are there when its first part is, so only a signal can be in their
 * way. Returns the size of the last, or -1. */
static int
append_parts(void *socket, VALUE parts)
{
    int size, more;
    do {
        while ((size = receive_part(socket)) < 0) {
            if (errno != EINTR) return -1;
        }
        more = msg_more(&inbox);
        rb_ary_push(parts, part_as_string(size));
    } while (more);
    return size;
}

/* take(native) -> String or nil: one part. */
static VALUE
take(VALUE self, VALUE native)
{
    int size = receive_part(address_of(native));
    return size < 0 ? Qnil : part_as_string(size);
}

/* take_into(native, string) -> Integer or nil: one part into a string, in place of what was in it; its size. */
static VALUE
take_into(VALUE self, VALUE native, VALUE string)
{
    int answer;

    if (!RB_TYPE_P(string, T_STRING)) return Qnil;
    rb_str_modify(string); /* refuses a frozen one before anything is received */
    if ((answer = receive_part(address_of(native))) < 0) return Qnil;

    long size = size_of(answer);

    if (size > RSTRING_LEN(string)) rb_str_modify_expand(string, size - RSTRING_LEN(string));
    memcpy(RSTRING_PTR(string), msg_data(&inbox), size);
    rb_str_set_len(string, size);
    rb_enc_associate_index(string, rb_ascii8bit_encindex());
    free_if_large(size);
    return LONG2NUM(size);
}

/* take_parts(native, parts) -> Integer or nil: all parts of one message; the size of the last. */
static VALUE
take_parts(VALUE self, VALUE native, VALUE parts)
{
    Check_Type(parts, T_ARRAY);
    int size = append_parts(address_of(native), parts);
    return size < 0 ? Qnil : INT2NUM(size);
}

/* take_messages(native, messages, limit) -> messages: those that are there, each as an Array of its parts. */
static VALUE
take_messages(VALUE self, VALUE native, VALUE messages, VALUE limit)
{
    void *socket = address_of(native);
    long left = NUM2LONG(limit), bytes = 0;

    Check_Type(messages, T_ARRAY);
    while (left-- > 0 && bytes < BATCH_BYTES_MAX) {
        int size = receive_part(socket);
        if (size < 0) break;

        int more = msg_more(&inbox);
        VALUE parts = rb_ary_new_from_args(1, part_as_string(size));
        if (more && append_parts(socket, parts) < 0) break;
        for (long index = 0; index < RARRAY_LEN(parts); index++) bytes += RSTRING_LEN(rb_ary_entry(parts, index));
        rb_ary_push(messages, parts);
    }
    return messages;
}

/* each_ready(socket) { |*parts| }: yields the messages that are there until there is none, or the socket was closed or
 * has a message put aside. None is in hand while the block runs, so an exception or a `break` loses none. */
static VALUE
each_ready(VALUE self, VALUE socket)
{
    for (;;) {
        rb_thread_check_ints();
        if (!NIL_P(rb_ivar_get(socket, id_kept))) return Qnil;

        void *native = address_of(rb_ivar_get(socket, id_native));
        int size = receive_part(native);
        if (size < 0) return Qnil;

        int more = msg_more(&inbox);
        VALUE part = part_as_string(size);
        if (!more) {
            rb_yield(part);
            continue;
        }
        VALUE parts = rb_ary_new_from_args(1, part);
        if (append_parts(native, parts) < 0) return Qnil;
        rb_yield_splat(parts);
    }
}

/* Sends a String, or the message that an FFI::Pointer points to. */
static int
send_part(void *socket, VALUE part, int flags)
{
    flags |= DONTWAIT;
    if (RB_TYPE_P(part, T_STRING)) return string_send(socket, RSTRING_PTR(part), RSTRING_LEN(part), flags);
    return msg_send(address_of(rb_funcall(part, id_address, 0)), socket, flags);
}

/* put(native, string, flags) -> Integer or nil: sends one part; its size. */
static VALUE
put(VALUE self, VALUE native, VALUE string, VALUE flags)
{
    if (!RB_TYPE_P(string, T_STRING)) return Qnil;

    int size = send_part(address_of(native), string, NUM2INT(flags));
    return size < 0 ? Qnil : INT2NUM(size);
}

/* Sends the parts of one message, or none of them: libzmq has room for all when it takes the first. Where the peer goes
 * meanwhile, libzmq drops the message. Returns the size of the last part, or -1 with `errno`. */
static int
send_parts(void *socket, VALUE parts, int flags)
{
    long last = RARRAY_LEN(parts) - 1;
    int size = -1;
    for (long index = 0; index <= last; index++) {
        VALUE part = rb_ary_entry(parts, index);
        do {
            size = send_part(socket, part, index < last ? SNDMORE : flags);
        } while (size < 0 && errno == EINTR);
        if (size < 0 && index == 0) return -1;
    }
    return size < 0 && errno == EAGAIN ? 0 : size;
}

/* put_parts(native, parts, flags) -> Integer: sends the parts of one message, Strings and FFI::Pointers to messages, the
 * last with `flags`. The size of the last, or the negative number of the error. */
static VALUE
put_parts(VALUE self, VALUE native, VALUE parts, VALUE flags)
{
    Check_Type(parts, T_ARRAY);
    int size = send_parts(address_of(native), parts, NUM2INT(flags));
    return INT2NUM(size < 0 ? -errno : size);
}

static int
strings_only(VALUE parts)
{
    for (long index = 0; index < RARRAY_LEN(parts); index++) {
        if (!RB_TYPE_P(rb_ary_entry(parts, index), T_STRING)) return 0;
    }
    return RARRAY_LEN(parts) > 0;
}

/* put_messages(socket, messages, index) -> Integer: sends the messages from `index` on, each a String or an Array of
 * them, up to one that finds no room or has something else in it. The index of that one. */
static VALUE
put_messages(VALUE self, VALUE socket, VALUE messages, VALUE from)
{
    long index = NUM2LONG(from);

    Check_Type(messages, T_ARRAY);
    for (unsigned long round = 1; index < RARRAY_LEN(messages); index++, round++) {
        void *native = address_of(rb_ivar_get(socket, id_native));
        VALUE message = rb_ary_entry(messages, index);
        if (RB_TYPE_P(message, T_STRING)) {
            if (send_part(native, message, 0) < 0) break;
        } else if (RB_TYPE_P(message, T_ARRAY) && strings_only(message)) {
            if (send_parts(native, message, 0) < 0) break;
        } else {
            break;
        }
        if (round % SENDS_BETWEEN_CHECKS == 0) rb_thread_check_ints();
    }
    return LONG2NUM(index);
}

/* setup(msg_init, msg_close, msg_recv, msg_data, msg_more, msg_size, msg_send, send): the addresses of libzmq's functions. */
static VALUE
setup(int count, VALUE *addresses, VALUE self)
{
    rb_check_arity(count, 8, 8);
    msg_init = (int (*)(zmq_msg_t *))address_of(addresses[0]);
    msg_close = (int (*)(zmq_msg_t *))address_of(addresses[1]);
    msg_recv = (int (*)(zmq_msg_t *, void *, int))address_of(addresses[2]);
    msg_data = (void *(*)(zmq_msg_t *))address_of(addresses[3]);
    msg_more = (int (*)(const zmq_msg_t *))address_of(addresses[4]);
    msg_size = (size_t (*)(const zmq_msg_t *))address_of(addresses[5]);
    msg_send = (int (*)(zmq_msg_t *, void *, int))address_of(addresses[6]);
    string_send = (int (*)(void *, const void *, size_t, int))address_of(addresses[7]);
    msg_init(&inbox);
    return Qnil;
}

void
Init_compiled_loops(void)
{
    VALUE loops = rb_define_module_under(rb_define_module("ZMQ"), "CompiledLoops");
    id_native = rb_intern("@native");
    id_kept = rb_intern("@kept");
    id_address = rb_intern("address");
    rb_define_singleton_method(loops, "setup", setup, -1);
    rb_define_singleton_method(loops, "take", take, 1);
    rb_define_singleton_method(loops, "take_into", take_into, 2);
    rb_define_singleton_method(loops, "take_parts", take_parts, 2);
    rb_define_singleton_method(loops, "take_messages", take_messages, 3);
    rb_define_singleton_method(loops, "each_ready", each_ready, 1);
    rb_define_singleton_method(loops, "put", put, 3);
    rb_define_singleton_method(loops, "put_parts", put_parts, 3);
    rb_define_singleton_method(loops, "put_messages", put_messages, 3);
}
