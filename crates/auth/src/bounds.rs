//! Bounds on everything that a client can make grow.

/// Bytes of the name of a user, a vhost or an exchange.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of a password.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 4096;
/// Bytes that the compiled form of a pattern may take.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 256 << 10;
/// Tags of a user.
pub const TAGS_MAX: usize = 32;
/// Users.
pub const USERS_MAX: usize = 50_000;
/// Permissions of all users together, and topic permissions besides.
pub const PERMISSIONS_MAX: usize = 200_000;
