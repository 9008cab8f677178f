//! Ruby's C interface, as far as the extension needs it: [`api`] declares functions, [`layout`] reads objects in place,
//! [`value`] makes and takes apart values, [`error`] turns failures into exceptions.
//!
//! These bindings are written by hand: docs/decisions/0004-ruby-bindings-by-hand.md says why.
//!
//! # Rules that everything above this module keeps
//! - A Ruby function may raise, which jumps over the Rust frames in between. So **no frame from which Ruby is called
//!   holds anything with a destructor**: values live on the stack, memory that must outlast a call belongs to Ruby.
//! - A slice into a string ends before the next call that can run Ruby code: that code could change the string.
//! - Ruby's collector finds values on the stack and in registers. None is ever put on Rust's heap.

pub(crate) mod api;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod value;
