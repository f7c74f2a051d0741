//! The program is linked without its symbol table, which is a fifth of it, with one copy of functions that were compiled to the same code, and
//! with its relocations in their short form. A panic names its file and line all the same; for function names in a backtrace or a profile
//! build with `TRIBUTARY_SYMBOLS=1`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=TRIBUTARY_SYMBOLS");
    if std::env::var_os("TRIBUTARY_SYMBOLS").is_some() {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    // Rust links with LLD on this target. Other linkers may not know the options.
    if std::env::var("TARGET").is_ok_and(|target| target == "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
        if loader_knows_relr() {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Whether this machine's loader can read relocations in their short form, which glibc has known since 2.36.
fn loader_knows_relr() -> bool {
    let Ok(said) = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let said = String::from_utf8_lossy(&said.stdout);
    let Some((major, minor)) = said.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.')) else {
        return false;
    };
    let minor = minor.split('.').next().unwrap_or_default();
    matches!((major.parse::<u32>(), minor.parse::<u32>()), (Ok(major), Ok(minor)) if (major, minor) >= (2, 36))
}
