//! Finds out which Ruby the extension is for, and how to link against it.
//!
//! Ruby's objects are read in place, and where their fields lie differs between Ruby's minor versions. The version comes
//! from `RBCONFIG_MAJOR` and `RBCONFIG_MINOR` where they are set (cross builds do), else from the Ruby in `RUBY`,
//! else from the `ruby` of the path.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for name in ["RUBY", "PATH", "RBCONFIG_MAJOR", "RBCONFIG_MINOR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let (major, minor) = (number("MAJOR"), number("MINOR"));
    assert!(
        (major, minor) >= (3, 0),
        "Ruby {major}.{minor} is too old: 3.0 is the first that is supported"
    );
    for at_least in [(3, 2), (3, 3), (3, 5)] {
        if (major, minor) >= at_least {
            println!("cargo:rustc-cfg=ruby_{}_{}", at_least.0, at_least.1);
        }
    }
    println!("cargo:rustc-env=BUILT_FOR_RUBY_MAJOR={major}");
    println!("cargo:rustc-env=BUILT_FOR_RUBY_MINOR={minor}");
    link();
}

/// Ruby's functions come from the process that loads the extension, except on Windows, where a DLL names its own.
fn link() {
    match env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-undefined,dynamic_lookup"),
        Ok("windows") => {
            println!("cargo:rustc-link-search=native={}", config("libdir"));
            for library in config("LIBRUBYARG_SHARED")
                .split_whitespace()
                .filter_map(|word| word.strip_prefix("-l"))
            {
                println!("cargo:rustc-link-lib=dylib={library}");
            }
        }
        _ => {}
    }
}

fn number(key: &str) -> u32 {
    let text = config(key);
    text.parse().unwrap_or_else(|_| panic!("RbConfig's {key} is {text:?}, which is no number"))
}

/// A value of Ruby's configuration.
fn config(key: &str) -> String {
    if let Ok(value) = env::var(format!("RBCONFIG_{key}")) {
        return value;
    }
    let ruby = env::var("RUBY").unwrap_or_else(|_| "ruby".to_owned());
    let script = format!("print RbConfig::CONFIG.fetch({key:?})");
    let output =
        Command::new(&ruby).args(["-rrbconfig", "-e", &script]).output().unwrap_or_else(|error| {
            panic!("{ruby} cannot be run ({error}); name a Ruby in the variable RUBY")
        });
    assert!(output.status.success(), "{ruby} fails: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
