//! The program is linked without its symbol table, which is a fifth of it. A panic names its file and line all the same; for
//! function names in a backtrace or a profile build with `TRIBUTARY_SYMBOLS=1`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRIBUTARY_SYMBOLS");
    if std::env::var_os("TRIBUTARY_SYMBOLS").is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
}
