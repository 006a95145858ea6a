//! Has the program show Lua's functions to modules in C, which look for them there.

fn main() {
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=lua*");
    println!("cargo::rerun-if-changed=build.rs");
}
