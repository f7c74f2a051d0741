//! The process that reads one file: it takes a request and bytes on its standard input, gives up its rights, and writes lines to its standard output.

use std::io::{BufRead as _, BufWriter, Read as _, Write as _};
use std::process::ExitCode;

use domain::reading::Request;

use crate::{Limits, Source, jail, preview, read};

/// The longest request: a line with a name, a type, paths and the numbers of known pages.
const MOST_REQUEST_BYTES: u64 = 1 << 20;

/// Reads the file on standard input. An exit code that is not 0 comes without an end of the file.
pub fn run() -> ExitCode {
    match whole() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: the file could not be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn whole() -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    (&mut input).take(MOST_REQUEST_BYTES).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    // Before a byte of the file is seen.
    jail::enter(&request.models)?;
    let mut bytes = Vec::new();
    match request.bytes {
        Some(n) => {
            input.take(n + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != n {
                return Err(std::io::Error::other("its bytes broke off"));
            }
        }
        None => drop(input.read_to_end(&mut bytes)?),
    }
    let limits = Limits { pages: request.most_pages.unwrap_or(Limits::default().pages), ..Limits::default() };
    let source = Source { bytes, name: request.name, media_type: request.media_type };
    let mut out = BufWriter::new(std::io::stdout().lock());
    match request.draw {
        Some(page) => preview::draw(&source, page, &mut out)?,
        None => read(source, limits, &request.models, &request.known, &mut out)?,
    }
    out.flush()
}
