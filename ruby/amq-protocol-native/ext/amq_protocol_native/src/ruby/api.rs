//! Functions of Ruby's C interface (`ruby.h`), none of them deprecated in any Ruby from 3.0 on.

use std::ffi::{c_char, c_int, c_long, c_void};

/// A Ruby object, or a small one in the word itself.
pub(crate) type Value = usize;
/// The number of an interned name.
pub(crate) type Id = usize;

/// A method as Ruby calls it when it takes any number of arguments.
pub(crate) type Method = unsafe extern "C-unwind" fn(c_int, *const Value, Value) -> Value;

/// A method as Ruby calls it when it takes no argument.
pub(crate) type Reader = unsafe extern "C-unwind" fn(Value) -> Value;

/// How Ruby treats the memory of a kind of object that is ours (`rb_data_type_t`).
#[repr(C)]
pub(crate) struct DataType {
    pub name: *const c_char,
    pub mark: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    /// What frees it, null for nothing.
    pub free: *const c_void,
    pub size: Option<unsafe extern "C-unwind" fn(*const c_void) -> usize>,
    pub compact: Option<unsafe extern "C-unwind" fn(*mut c_void)>,
    pub reserved: [*mut c_void; 1],
    pub parent: *const DataType,
    pub data: *mut c_void,
    pub flags: Value,
}

// SAFETY: nothing in it is ever written.
unsafe impl Sync for DataType {}

/// `RUBY_TYPED_FREE_IMMEDIATELY`: freeing runs no Ruby code.
pub(crate) const FREE_IMMEDIATELY: Value = 1;
/// `RUBY_TYPED_WB_PROTECTED`: every reference that is stored is told to the collector.
pub(crate) const WRITE_BARRIERS: Value = 1 << 5;

/// Goes on with the iteration of a hash.
pub(crate) const ST_CONTINUE: c_int = 0;
/// Ends the iteration of a hash.
pub(crate) const ST_STOP: c_int = 1;

/// `INTEGER_PACK_*`: one native word, two's complement; the result says whether it is all.
pub(crate) const PACK_LOW_64_BITS: c_int = 0x02 | 0x40 | 0x80;

unsafe extern "C-unwind" {
    /// Major, minor and teeny version of the running Ruby.
    pub static ruby_api_version: [c_int; 3];

    pub fn rb_big2ull(integer: Value) -> u64;
    pub fn rb_ary_cat(array: Value, values: *const Value, count: c_long) -> Value;
    pub fn rb_ary_entry(array: Value, index: c_long) -> Value;
    pub fn rb_ary_new_capa(capacity: c_long) -> Value;
    pub fn rb_ary_new_from_values(count: c_long, values: *const Value) -> Value;
    pub fn rb_ary_push(array: Value, value: Value) -> Value;
    pub fn rb_attr_get(object: Value, name: Id) -> Value;
    pub fn rb_class_new_instance(argc: c_int, argv: *const Value, class: Value) -> Value;
    pub fn rb_const_get(module: Value, name: Id) -> Value;
    pub fn rb_data_typed_object_wrap(
        class: Value,
        data: *mut c_void,
        kind: *const DataType,
    ) -> Value;
    pub fn rb_check_frozen(object: Value);
    pub fn rb_check_typeddata(object: Value, kind: *const DataType) -> *mut c_void;
    pub fn rb_const_defined(module: Value, name: Id) -> c_int;
    pub fn rb_define_alloc_func(class: Value, alloc: unsafe extern "C-unwind" fn(Value) -> Value);
    pub fn rb_define_singleton_method(
        object: Value,
        name: *const c_char,
        method: *const c_void,
        argc: c_int,
    );
    pub fn rb_define_method(class: Value, name: *const c_char, method: *const c_void, argc: c_int);
    pub fn rb_enc_associate_index(object: Value, index: c_int) -> Value;
    pub fn rb_enc_from_index(index: c_int) -> *mut c_void;
    pub fn rb_enc_get_index(object: Value) -> c_int;
    pub fn rb_enc_interned_str(bytes: *const c_char, len: c_long, encoding: *mut c_void) -> Value;
    pub fn rb_error_arity(argc: c_int, min: c_int, max: c_int) -> !;
    pub fn rb_exc_new_str(class: Value, message: Value) -> Value;
    pub fn rb_exc_raise(exception: Value) -> !;
    pub fn rb_ext_ractor_safe(flag: bool);
    pub fn rb_float_new(number: f64) -> Value;
    pub fn rb_float_value(number: Value) -> f64;
    pub fn rb_funcallv(object: Value, name: Id, argc: c_int, argv: *const Value) -> Value;
    pub fn rb_gc_mark(object: Value);
    pub fn rb_gc_register_mark_object(object: Value);
    pub fn rb_gc_writebarrier(from: Value, to: Value);
    pub fn rb_hash_aset(hash: Value, key: Value, value: Value) -> Value;
    pub fn rb_hash_bulk_insert(count: c_long, pairs: *const Value, hash: Value);
    pub fn rb_hash_foreach(
        hash: Value,
        each: unsafe extern "C-unwind" fn(Value, Value, Value) -> c_int,
        argument: Value,
    );
    pub fn rb_hash_new() -> Value;
    pub fn rb_id2sym(id: Id) -> Value;
    pub fn rb_integer_pack(
        integer: Value,
        words: *mut c_void,
        word_count: usize,
        word_size: usize,
        nails: usize,
        flags: c_int,
    ) -> c_int;
    pub fn rb_intern2(name: *const c_char, len: c_long) -> Id;
    pub fn rb_ll2inum(number: i64) -> Value;
    pub fn rb_num2dbl(number: Value) -> f64;
    pub fn rb_obj_as_string(object: Value) -> Value;
    pub fn rb_obj_class(object: Value) -> Value;
    pub fn rb_obj_is_kind_of(object: Value, class: Value) -> Value;
    pub fn rb_path2class(path: *const c_char) -> Value;
    pub fn rb_require(feature: *const c_char) -> Value;
    pub fn rb_str_new(bytes: *const c_char, len: c_long) -> Value;
    pub fn rb_str_subseq(string: Value, start: c_long, len: c_long) -> Value;
    pub fn rb_string_value(string: *mut Value) -> Value;
    pub fn rb_sym2str(symbol: Value) -> Value;
    pub fn rb_time_new(seconds: i64, microseconds: c_long) -> Value;
    pub fn rb_time_num_new(time: Value, offset: Value) -> Value;
    pub fn rb_to_int(object: Value) -> Value;
    pub fn rb_ull2inum(number: u64) -> Value;
    pub fn rb_utf8_encindex() -> c_int;
    pub fn rb_utf8_str_new(bytes: *const c_char, len: c_long) -> Value;
    pub fn ruby_xfree(memory: *mut c_void);
    pub fn ruby_xmalloc(size: usize) -> *mut c_void;
}
