//! h2spec: RFC 9113 and RFC 7541 case by case, against our server and our client.

use super::rust;
use crate::failure::{Result, verdict};
use crate::job::Job;
use crate::tools;

/// All cases of h2spec 2.2.1, including the strict ones.
const SERVER_CASES: u32 = 146;
/// h2spec's title of case 4.2/3. It sends 20 kB of headers in one frame, which is too large only with the default
/// SETTINGS_MAX_FRAME_SIZE of 16 KiB. Ours is 128 KiB, so the case is repeated with larger headers.
const OVERSIZED_HEADERS: &str =
    "3: Sends a large size HEADERS frame that exceeds the SETTINGS_MAX_FRAME_SIZE";
/// Five headers of this length exceed our frame size.
const OVERSIZED_HEADER_LEN: u32 = 30_000;
/// All cases of h2specd.
const CLIENT_CASES: u32 = 57;

/// Runs in plain text and over TLS.
pub(super) fn server() -> Result<String> {
    let plain = server_with("", "")?;
    let tls = server_with("--tls", "--tls --insecure")?;
    Ok(format!("{plain}; over TLS {tls}"))
}

fn server_with(serve_flags: &str, flags: &str) -> Result<String> {
    let server = rust::serve(serve_flags)?;
    let words = format!("--host 127.0.0.1 --port {} --path / --strict --timeout 1 {flags}", server.port());
    let job = Job::new(tools::H2SPEC.get()?).words(&words).minutes(10);
    let text = job.output()?.out;
    let (tests, mut passed) = counts_in(&text)?;
    if text.contains(&format!("× {OVERSIZED_HEADERS}")) {
        let job = job.words(&format!("--max-header-length {OVERSIZED_HEADER_LEN} http2/4.2/3"));
        passed += counts_in(&job.output()?.out)?.1;
    }
    server.stop()?;
    check_counts((tests, passed), SERVER_CASES)
}

/// Tests the client side of our HTTP/2 core. h2specd responds like a web server: a gRPC client resets the stream at the
/// response headers, before the case's frames arrive. The example used here accepts any response.
pub(super) fn client() -> Result<String> {
    let client = rust::example("blocking_client")?;
    let from_port = free_ports(CLIENT_CASES as u16)?;
    let job = Job::new(tools::H2SPECD.get()?);
    let job = job.words(&format!("--timeout 1 --from-port {from_port} --exec")).arg(client);
    check_counts(counts_in(&job.minutes(5).output()?.out)?, CLIENT_CASES)
}

/// Returns the first of `count` adjacent free ports.
fn free_ports(count: u16) -> Result<u16> {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    // Below the kernel's range for outgoing connections (from 32768 on Linux).
    let first =
        (20_000..32_000).step_by(usize::from(count)).find(|first| (*first..first + count).all(is_free));
    first.ok_or_else(|| failed!("no {count} consecutive free ports"))
}

fn check_counts((tests, passed): (u32, u32), expected: u32) -> Result<String> {
    let account = format!("{passed} of {expected} cases");
    verdict(tests == expected && passed == tests, account)
}

/// Parses tests and passed ones from `146 tests, 145 passed, 0 skipped, 1 failed`.
fn counts_in(text: &str) -> Result<(u32, u32)> {
    let parse = |line: &str| {
        let (tests, rest) = line.split_once(" tests, ").or_else(|| line.split_once(" test, "))?;
        Some((tests.trim().parse().ok()?, rest.split_once(" passed")?.0.parse().ok()?))
    };
    text.lines().rev().find_map(parse).ok_or_else(|| failed!("h2spec printed no summary"))
}

#[cfg(test)]
mod tests {
    use super::counts_in;

    #[test]
    fn summary_is_parsed() {
        let text = "  1) x\nFinished in 0.1 seconds\n146 tests, 145 passed, 0 skipped, 1 failed\n";
        assert_eq!(counts_in(text).ok(), Some((146, 145)));
        assert!(counts_in("Error: the server didn't receive the request").is_err());
    }
}
