/*
 * What no encoder that Ruby calls can do without, so that bench/ruby/run can measure it; of no use otherwise.
 *
 * It walks the same Hashes as the gem, by the only function there is for that, looks at the type of every key and value and
 * at the place and length of every string, and makes one String of the size to which they add up. It writes none of the
 * bytes, and it knows only what the benchmark passes.
 */

#include <ruby.h>
#include <string.h>
#include <time.h>

struct walk {
    size_t size;
    /* Where the strings are is looked up, as a program that copies them has to, and not used. */
    uintptr_t places;
};

static volatile uintptr_t places;

static void add_other(struct walk *walk, VALUE value);

static inline __attribute__((always_inline)) int is_string(VALUE value)
{
    return !RB_SPECIAL_CONST_P(value) && RB_BUILTIN_TYPE(value) == T_STRING;
}

static inline __attribute__((always_inline)) void add_string(struct walk *walk, VALUE string, size_t head)
{
    const char *place;
    long len;
    RSTRING_GETMEM(string, place, len);
    walk->places ^= (uintptr_t)place;
    walk->size += head + len;
}

/* A value with its tag. */
static inline __attribute__((always_inline)) void add_value(struct walk *walk, VALUE value)
{
    if (is_string(value))
        add_string(walk, value, 5);
    else if (RB_FIXNUM_P(value) || RB_FLONUM_P(value))
        walk->size += 9;
    else if (value == Qtrue || value == Qfalse)
        walk->size += 2;
    else
        add_other(walk, value);
}

static int add_entry(VALUE key, VALUE value, VALUE walk)
{
    if (!is_string(key))
        return ST_STOP;
    add_string((struct walk *)walk, key, 1);
    add_value((struct walk *)walk, value);
    return ST_CONTINUE;
}

/* Tables, arrays and times; anything else is a TypeError. */
static __attribute__((noinline)) void add_other(struct walk *walk, VALUE value)
{
    walk->size += 5;
    if (RB_TYPE_P(value, T_HASH)) {
        rb_hash_foreach(value, add_entry, (VALUE)walk);
    } else if (RB_TYPE_P(value, T_ARRAY)) {
        for (long index = 0; index < RARRAY_LEN(value); index++)
            add_value(walk, RARRAY_AREF(value, index));
    } else {
        walk->places ^= (uintptr_t)rb_time_timespec(value).tv_sec;
        walk->size += 4;
    }
}

/* The argument of Table.encode. */
static VALUE table(VALUE self, VALUE table)
{
    struct walk walk = {4, 0};
    Check_Type(table, T_HASH);
    rb_hash_foreach(table, add_entry, (VALUE)&walk);
    places = walk.places;
    return rb_str_new(NULL, walk.size);
}

static int add_property(VALUE name, VALUE value, VALUE walk)
{
    ((struct walk *)walk)->places ^= name;
    if (is_string(value)) {
        add_string((struct walk *)walk, value, 1);
    } else if (RB_FIXNUM_P(value)) {
        ((struct walk *)walk)->size += 1;
    } else {
        Check_Type(value, T_HASH);
        ((struct walk *)walk)->size += 4;
        rb_hash_foreach(value, add_entry, walk);
    }
    return ST_CONTINUE;
}

/* The arguments of encode_to_string, for a body that fits into one frame. It is copied, in one piece. */
static VALUE publish(VALUE self, VALUE channel, VALUE body, VALUE properties, VALUE exchange, VALUE routing_key,
                     VALUE mandatory, VALUE immediate, VALUE frame_size)
{
    /* Three frames with 8 bytes each; what the method and the content header have besides strings and properties. */
    struct walk walk = {3 * 8 + 7 + 14, channel ^ frame_size ^ mandatory ^ immediate};
    Check_Type(body, T_STRING);
    Check_Type(properties, T_HASH);
    Check_Type(exchange, T_STRING);
    Check_Type(routing_key, T_STRING);
    add_string(&walk, exchange, 1);
    add_string(&walk, routing_key, 1);
    rb_hash_foreach(properties, add_property, (VALUE)&walk);
    places = walk.places;

    const char *content;
    long len;
    RSTRING_GETMEM(body, content, len);
    VALUE string = rb_str_new(NULL, walk.size + len);
    memcpy(RSTRING_PTR(string) + walk.size, content, len);
    return string;
}

void Init_floor(void)
{
    VALUE floor = rb_define_module("Floor");
    rb_define_singleton_method(floor, "table", table, 1);
    rb_define_singleton_method(floor, "publish", publish, 8);
}
