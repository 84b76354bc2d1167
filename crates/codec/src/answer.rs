//! Responds to the lab's requests, line by line.

use std::io::{self, BufRead, Write};

use crate::bench::Codecs;
use crate::contract::{Answer, Begun, Request, SCHEMA};
use crate::instructions::count_under_callgrind;

/// Prints the first line, and responds to requests until the end of input. `selection` creates the same codecs in
/// another process.
pub(crate) fn all(
    mut codecs: Codecs,
    selection: &str,
    requests: impl BufRead,
    mut answers: impl Write,
) -> io::Result<()> {
    let mut say = |line: String| {
        writeln!(answers, "{line}")?;
        answers.flush()
    };
    let begun = Begun {
        schema: SCHEMA,
        codecs: codecs.codecs(),
        data: codecs.data(),
        sizes: codecs.sizes(),
        lines: codecs.lines(),
    };
    say(serde_json::to_string(&begun)?)?;
    for request in requests.lines() {
        let answer = match serde_json::from_str(&request?) {
            Ok(request) => answer(&mut codecs, selection, request).unwrap_or_else(Answer::Error),
            Err(error) => Answer::Error(format!("invalid request: {error}")),
        };
        say(serde_json::to_string(&answer)?)?;
    }
    Ok(())
}

fn answer(codecs: &mut Codecs, selection: &str, request: Request) -> Result<Answer, String> {
    Ok(match request {
        Request::Convert { line, warm_ups, conversions } => {
            let elapsed = codecs.convert(&line, warm_ups, conversions)?;
            Answer::ElapsedNs(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
        }
        Request::Allocations { line } => Answer::Allocations(codecs.allocations(&line)?),
        Request::Instructions { folder } => {
            let program = std::env::current_exe().map_err(|error| error.to_string())?;
            let counted = count_under_callgrind(&program, &["count", selection], codecs, &folder);
            Answer::Instructions(counted.map_err(|error| error.to_string())?)
        }
        Request::Messages { folder } => {
            Answer::Messages(codecs.write_messages(&folder).map_err(|error| error.to_string())?)
        }
    })
}
