//! The binary of [`program`].

fn main() -> std::process::ExitCode {
    program::main()
}
