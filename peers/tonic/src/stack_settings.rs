//! Settings that make tonic fast, and the command `settings`, which prints them.

use crate::default_threads;

// HTTP/2 settings of both sides. Streams of 1.5 MB and 4 MiB are 1.7 to 2.2 times as fast with these as with hyper's
// defaults. Windows of 1 MiB, adaptive windows, and frames of 256 KiB lie in between. Small calls do not change.

/// Stream window in bytes.
pub const STREAM_WINDOW: u32 = 8 << 20;
/// Connection window in bytes.
pub const CONNECTION_WINDOW: u32 = 16 << 20;
/// Maximum frame size in bytes, so that a message needs fewer frames.
pub const FRAME_SIZE_MAX: u32 = 1 << 20;

// The codec's `BufferSettings` are tonic's defaults. The figures are thousand messages per second of one stream, with a
// yield_threshold of 32 KiB (the default), 64 and 128 KiB. Server and client have a CPU each; medians of five
// interleaved windows of 0.4 s:
//
// - from the server, 1 KiB: 1,630, 1,650 and 1,520; 64 KiB: 37, 32 and 31
// - from the client, 1 KiB: 1,690, 1,510 and 1,450; 64 KiB: 21, 22 and 30
//
// None of this exceeds the noise, nor do 256 KiB, nor a buffer_size of 1 and 64 KiB. A buffer_size of 8 KiB halves the
// rate of streams of 1 KiB.

/// Maximum message size in both directions: unlimited.
pub const MESSAGE_SIZE_MAX: usize = usize::MAX;
/// The kernel sends small writes immediately.
pub const TCP_NODELAY: bool = true;

/// The manifest, for the build profile.
const MANIFEST: &str = include_str!("../Cargo.toml");

/// A line of `settings`: SIDE, NAME, VALUE and WHY.
struct StackSetting {
    side: &'static str,
    name: &'static str,
    value: String,
    why: &'static str,
}

pub fn print() {
    for StackSetting { side, name, value, why } in lines() {
        println!("{side}\t{name}\t{value}\t{why}");
    }
}

fn lines() -> Vec<StackSetting> {
    let line = |side, name, value: String, why| StackSetting { side, name, value, why };
    let both = |name, value, why| line("both", name, value, why);
    let default = |name, value: &str| line("both", name, value.to_owned(), "the default");
    let faster = "large messages are 1.7 to 2.2 times as fast as with hyper's defaults";
    vec![
        both("stream window (initial_stream_window_size)", bytes(STREAM_WINDOW as usize), faster),
        both("connection window (initial_connection_window_size)", bytes(CONNECTION_WINDOW as usize), faster),
        both("largest frame (max_frame_size)", bytes(FRAME_SIZE_MAX as usize), faster),
        both(
            "largest message (max_decoding_message_size, max_encoding_message_size)",
            if MESSAGE_SIZE_MAX == usize::MAX { "no limit".to_owned() } else { bytes(MESSAGE_SIZE_MAX) },
            "the default is 4 MiB for those received",
        ),
        both("TCP_NODELAY (tcp_nodelay)", on(TCP_NODELAY), ""),
        default("encoder's and decoder's buffer (BufferSettings::buffer_size)", "8 KiB"),
        line(
            "both",
            "flushing of stream writers (BufferSettings::yield_threshold)",
            "32 KiB of encoded messages, or no message at hand".to_owned(),
            "the default; 64 KiB and more gained nothing, 8 KiB halved streams of 1 KiB",
        ),
        both(
            "threads (worker_threads)",
            match default_threads() {
                1 => "1, tokio's current-thread runtime".to_owned(),
                threads => format!("{threads}, tokio's multi-thread runtime"),
            },
            "one for each processor of the process; --threads says otherwise",
        ),
        both("transport", "plain HTTP/2; TLS with --cert and --cacert".to_owned(), "as in all stacks"),
        both(
            "payload copies",
            "one to encode, none to decode".to_owned(),
            "payloads are `Bytes`, and prost's encoder copies them into one buffer",
        ),
        both("messages", "those of a run made once, with one shared payload".to_owned(), ""),
        default("compression (send_compressed, accept_compressed)", "off"),
        default("adaptive window (http2_adaptive_window)", "off"),
        default("keep-alive (http2_keep_alive_interval)", "off"),
        line("server", "concurrent streams (max_concurrent_streams)", "no limit".to_owned(), "the default"),
        line(
            "client",
            "requests that wait for the connection's task (buffer_size)",
            "1024".to_owned(),
            "the default",
        ),
        default("deadlines, limits, layers, tracing", "none"),
        both("retries", "none".to_owned(), "tonic has none"),
        default("allocator", "the system's"),
        both("build ([profile.release])", profile(), "as this workspace"),
    ]
}

fn on(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn bytes(count: usize) -> String {
    match count {
        _ if count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        _ if count.is_multiple_of(1 << 10) => format!("{} KiB", count >> 10),
        _ => format!("{count} B"),
    }
}

/// Formats the release profile: `opt-level = 3, lto = "thin", …`
fn profile() -> String {
    let lines = MANIFEST.lines().skip_while(|line| *line != "[profile.release]").skip(1);
    let options = lines.take_while(|line| line.contains('=')).map(str::trim);
    // Cargo's default, which the manifest does not repeat.
    std::iter::once("opt-level = 3").chain(options).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_four_fields() {
        for StackSetting { side, name, value, why } in lines() {
            assert!(["client", "server", "both"].contains(&side), "{name}");
            assert!(!name.is_empty() && !value.is_empty(), "{name}: {value}");
            assert!(![name, &value, why].iter().any(|field| field.contains(['\t', '\n'])), "{name}");
        }
        assert!(profile().contains("lto = ") && !MANIFEST.contains("opt-level"), "{}", profile());
    }
}
