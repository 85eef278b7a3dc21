//! Has the program that people install carry its line tables compressed: they are most of its size,
//! and back traces unpack them when one is needed. (Packed by zlib, not by zstd, which the standard
//! library does not read.)

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--compress-debug-sections=zlib");
    }
}
