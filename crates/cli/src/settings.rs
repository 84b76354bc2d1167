//! `thalweg settings`: transport settings, in the format that every peer prints.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;
use thalweg::http2::Config;
use thalweg_lab::stack::Setting;
use thalweg_measure::size::ByteSize;

use crate::failure::Failure;
use crate::terminal::{self, Syntax};

/// Print the transport settings of `serve` and `load`
///
/// Each line has side, name, value and reason, separated by tabs, and the variant if it is of one only.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {}

pub(crate) fn run(_: &SettingsArgs) -> Result<ExitCode, Failure> {
    let line = |Setting { side, name, value, why }: &Setting| format!("{side}\t{name}\t{value}\t{why}");
    let mut text: String = common_settings().iter().map(|setting| line(setting) + "\n").collect();
    text.extend(
        variant_settings().iter().map(|(variant, setting)| format!("{}\t{variant}\n", line(setting))),
    );
    terminal::print(Syntax::Text, &text)?;
    Ok(ExitCode::SUCCESS)
}

const STREAM_MESSAGES: &str = "messages of streams";
const BUSY_POLLING: &str = "busy polling (busy_poll)";

fn setting(side: &str, name: &str, value: String, why: &str) -> Setting {
    Setting { side: side.to_owned(), name: name.to_owned(), value, why: why.to_owned() }
}

/// Returns the settings in which variants differ.
fn variant_settings() -> [(&'static str, Setting); 2] {
    let reused = setting("both", STREAM_MESSAGES, "in place".to_owned(), "buffers are reused");
    let asleep = setting("both", BUSY_POLLING, "off".to_owned(), "a waiting connection sleeps at once");
    [("in-place", reused), ("no-busy-poll", asleep)]
}

/// Returns the common settings. `serve` and `load` use the library's defaults except for the message size.
fn common_settings() -> Vec<Setting> {
    let default = |name: &str, bytes: u64| setting("both", name, size(bytes), "the default");
    let http2 = Config::default();
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    vec![
        default("stream window (stream_window)", http2.stream_window.into()),
        default("connection window (connection_window)", http2.connection_window.into()),
        default("largest frame (max_frame_size)", http2.max_frame_size.into()),
        default("output buffer (output_target)", http2.output_target as u64),
        setting(
            "both",
            "largest message (max_decoding_message_size)",
            size(64 << 20),
            "the default is 4 MiB",
        ),
        setting(
            "server",
            "streams of a connection (max_concurrent_streams)",
            http2.max_concurrent_streams.to_string(),
            "the default",
        ),
        setting(
            "both",
            "flushing of stream writers",
            "at 64 KiB, or when no message is ready".to_owned(),
            "messages are batched into one write",
        ),
        setting("both", "payloads", "shared, not copied".to_owned(), "bytes::Bytes, sent and received"),
        setting("both", STREAM_MESSAGES, "owned".to_owned(), "each message is a new object"),
        setting("both", BUSY_POLLING, "up to 30 µs, adaptive".to_owned(), "the default"),
        setting("both", "TCP_NODELAY", "on".to_owned(), "always"),
        setting("both", "compression", "off".to_owned(), "the default"),
        setting("server", "threads (threads)", threads.to_string(), "one per processor; set by --threads"),
        setting("client", "threads", "1".to_owned(), "tokio's current-thread runtime; set by --threads"),
        setting("both", "allocator", "the system's".to_owned(), ""),
        setting("both", "build", build().to_owned(), ""),
    ]
}

fn build() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string()
}
