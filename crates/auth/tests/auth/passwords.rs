//! Password hashes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courser_auth::{Hashing, PASSWORD_BYTES_MAX, PasswordHash};

/// Made by RabbitMQ's documented method: salt 908dc60a, password test12.
const OF_RABBITMQ: &str = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR";

#[test]
fn argon2id_is_what_new_passwords_get() {
    let hash = PasswordHash::new(b"secret", Hashing::default()).expect("a hash");
    assert_eq!(hash.algorithm(), Some("argon2id"));
    assert!(hash.verify(b"secret"));
    assert!(!hash.verify(b"Secret"));
    assert!(!hash.verify(b""));
    assert!(!hash.is_known_to_rabbitmq());
    let again = PasswordHash::new(b"secret", Hashing::default()).expect("a hash");
    assert_ne!(hash.encode(), again.encode(), "no salt");
}

#[test]
fn rabbitmqs_salted_sha256_is_understood() {
    for algorithm in [None, Some("rabbit_password_hashing_sha256")] {
        let hash = PasswordHash::decode(OF_RABBITMQ, algorithm).expect("a hash");
        assert!(hash.verify(b"test12"));
        assert!(!hash.verify(b"test13"));
        assert_eq!(hash.encode(), OF_RABBITMQ);
    }
}

#[test]
fn salted_sha512_is_understood() {
    let hash = PasswordHash::quick(b"secret").expect("a hash");
    assert_eq!(hash.algorithm(), Some("rabbit_password_hashing_sha512"));
    let back = PasswordHash::decode(&hash.encode(), hash.algorithm()).expect("a hash");
    assert!(back.verify(b"secret"));
    assert!(!back.verify(b"secret "));
}

#[test]
fn every_hash_can_be_kept_and_read_back() {
    for hashing in [Hashing::Argon2id, Hashing::RabbitSha256] {
        let hash = PasswordHash::new(b"secret", hashing).expect("a hash");
        let back = PasswordHash::decode(&hash.encode(), hash.algorithm()).expect("a hash");
        assert_eq!(back, hash);
        assert!(back.verify(b"secret"));
    }
}

/// The argon2id hash of `correct horse` by the C library, with other costs than ours and 24 bytes.
pub fn foreign() -> PasswordHash {
    let text = "JGFyZ29uMmlkJHY9MTkkbT0xMDI0LHQ9MixwPTIkMUhhTEpqODM4NXI4ZTZxRjY4dXlYUS\
                RveDNoUmJtOUllaENrY3A0a0wwcmkrUUpCM3NaME0zbQ==";
    PasswordHash::decode(text, Some("argon2id")).expect("a hash")
}

#[test]
fn a_hash_of_argon2s_own_library_is_understood() {
    let hash = foreign();
    assert!(hash.verify(b"correct horse"));
    assert!(!hash.verify(b"correct horses"));
}

/// By the C library with version 0x10, which the text leaves out.
#[test]
fn an_argon2id_hash_without_a_version_is_of_the_first_one() {
    let text = "$argon2id$m=1024,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$o9ny/yJ672p103gWmT7tJH1DmsaGqr7g";
    let hash = PasswordHash::decode(&STANDARD.encode(text), Some("argon2id")).expect("a hash");
    assert!(hash.verify(b"correct horse"));
    assert!(!hash.verify(b"correct horses"));
    let unknown = STANDARD.encode(text.replace("$m=", "$v=20$m="));
    assert!(PasswordHash::decode(&unknown, Some("argon2id")).is_err(), "no such version");
}

#[test]
fn without_a_hash_no_password_is_right() {
    let none = PasswordHash::decode("", Some("rabbit_password_hashing_sha256")).expect("none");
    assert_eq!(none, PasswordHash::none());
    assert!(!none.verify(b""));
    assert!(!none.verify(b"guest"));
}

#[test]
fn a_hash_that_can_not_be_checked_is_refused_when_it_is_set() {
    let refused = [
        ("not base64!", None),
        ("AAAA", None),
        (OF_RABBITMQ, Some("rabbit_password_hashing_sha512")),
        (OF_RABBITMQ, Some("rabbit_password_hashing_md5")),
        (OF_RABBITMQ, Some("my_own_module")),
        (OF_RABBITMQ, Some("argon2id")),
    ];
    for (hash, algorithm) in refused {
        assert!(PasswordHash::decode(hash, algorithm).is_err(), "{hash} {algorithm:?}");
    }
}

#[test]
fn a_hash_that_costs_too_much_is_refused() {
    // m=4194304 KiB, which is 4 GiB.
    let costly = "JGFyZ29uMmlkJHY9MTkkbT00MTk0MzA0LHQ9NSxwPTEkQUFBQUFBQUFBQUFBQUFBQUFBQUFBQSRBQUFBQUFBQUFB\
                  QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB";
    let error = PasswordHash::decode(costly, Some("argon2id")).expect_err("it is refused");
    assert!(error.to_string().contains("m=4194304"), "{error}");
}

#[test]
fn a_password_has_a_bounded_length() {
    let long = vec![b'x'; PASSWORD_BYTES_MAX + 1];
    assert!(PasswordHash::new(&long, Hashing::Argon2id).is_err());
    let fits = &long[..PASSWORD_BYTES_MAX];
    assert!(PasswordHash::new(fits, Hashing::Argon2id).expect("a hash").verify(fits));
}

#[test]
fn what_is_printed_for_debugging_is_not_the_hash() {
    let hash = PasswordHash::new(b"secret", Hashing::RabbitSha256).expect("a hash");
    assert_eq!(format!("{hash:?}"), "rabbit_password_hashing_sha256");
}
