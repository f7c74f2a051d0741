//! The program: `up` runs everything on one machine, `serve` and `worker` are its halves, and the other commands operate it. It is a
//! library, so that it is compiled while the machine code of the pages is still being made: the binary would wait for that.

mod cli;
mod logging;

use std::process::ExitCode;

/// Runs the program with this process's arguments, until it ends.
pub fn main() -> ExitCode {
    // Before anything is read but this word: the process that parses foreign files has no settings, and soon no rights.
    if std::env::args_os().nth(1).is_some_and(|word| word == "read") {
        return reader::run();
    }
    end_with_the_reader();
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

/// Ends the program when nobody reads its output any more, as `head` does after ten lines. Printing panics then. The code is the one that
/// shells show for programs that the signal SIGPIPE ends.
fn end_with_the_reader() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload_as_str().unwrap_or_default();
        if said.starts_with("failed printing to std") && said.contains("Broken pipe") {
            std::process::exit(141);
        }
        others(panic);
    }));
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
