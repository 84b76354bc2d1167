//! Responds to the lab's requests, line by line.

use std::io::{self, BufRead, Write};

use crate::bench::Codecs;
use crate::contract::{Hello, Request, Response, SCHEMA};
use crate::instructions::count_under_callgrind;

/// Prints the first line, and responds to requests until the end of input. `selection` creates the same codecs in
/// another process.
pub(crate) fn serve(
    mut codecs: Codecs,
    selection: &str,
    requests: impl BufRead,
    mut responses: impl Write,
) -> io::Result<()> {
    let mut write_line = |line: String| {
        writeln!(responses, "{line}")?;
        responses.flush()
    };
    let hello = Hello {
        schema: SCHEMA,
        codecs: codecs.codecs(),
        data: codecs.data(),
        sizes: codecs.sizes(),
        lines: codecs.lines(),
    };
    write_line(serde_json::to_string(&hello)?)?;
    for request in requests.lines() {
        let response = match serde_json::from_str(&request?) {
            Ok(request) => respond(&mut codecs, selection, request).unwrap_or_else(Response::Error),
            Err(error) => Response::Error(format!("invalid request: {error}")),
        };
        write_line(serde_json::to_string(&response)?)?;
    }
    Ok(())
}

fn respond(codecs: &mut Codecs, selection: &str, request: Request) -> Result<Response, String> {
    Ok(match request {
        Request::Convert { line, warm_ups, conversions } => {
            let elapsed = codecs.convert(&line, warm_ups, conversions)?;
            Response::ElapsedNs(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
        }
        Request::Allocations { line } => Response::Allocations(codecs.allocations(&line)?),
        Request::Instructions { folder } => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let instructions = count_under_callgrind(&program, &["count", selection], codecs, &folder);
            Response::Instructions(instructions.map_err(|error| error.to_string())?)
        }
        Request::Messages { folder } => {
            Response::Messages(codecs.write_messages(&folder).map_err(|error| error.to_string())?)
        }
    })
}
