//! The program is linked without its symbol table, which is a fifth of it, and with one copy of functions that were compiled to the
//! same code. A panic names its file and line all the same; for function names in a backtrace or a profile build with
//! `TRIBUTARY_SYMBOLS=1`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRIBUTARY_SYMBOLS");
    if std::env::var_os("TRIBUTARY_SYMBOLS").is_some() {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    // Rust links with LLD on this target. Other linkers may not know the option.
    if std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
