//! The program: `up` runs everything on one machine, `serve` and `worker` are its halves, and the other commands operate it.

mod cli;
mod logging;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Two threads of work are plenty for a program that waits for a database; fewer stacks keep it small.
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(16)
        .enable_all()
        .build();
    let ended = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let ended = runtime.block_on(cli::run());
        runtime.shutdown_background(); // a task that never yields must not keep us
        ended
    });
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}", in_words(&error));
            ExitCode::FAILURE
        }
    }
}

/// Prints the error and its causes, each once, and the hint last.
fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::from("error: ");
    let mut last = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if text == last || last.ends_with(&text) {
            continue;
        }
        if !last.is_empty() {
            words.push_str(": ");
        }
        words.push_str(&text);
        last = text;
    }
    words
}
