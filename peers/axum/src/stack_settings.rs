//! Settings that make axum and tonic fast, and the command `settings`, which prints them.

use crate::serve::default_threads;

// The values for tonic are those of the peer `tonic`, which explains them. axum::serve has no HTTP/2 options.
pub const STREAM_WINDOW: u32 = 8 << 20;
pub const CONNECTION_WINDOW: u32 = 16 << 20;
pub const FRAME_SIZE_MAX: u32 = 1 << 20;
pub const MESSAGE_SIZE_MAX: usize = usize::MAX;
pub const TCP_NODELAY: bool = true;

/// Maximum size of a JSON body.
pub const BODY_SIZE_MAX: usize = 64 << 20;

pub fn print() {
    for (side, name, value, why) in lines() {
        println!("{side}\t{name}\t{value}\t{why}");
    }
}

fn lines() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let server = |name, value: &str, why| ("server", name, value.to_owned(), why);
    vec![
        server("gRPC: stream and connection window", "8 MiB, 16 MiB", "as in the peer tonic"),
        server("gRPC: largest frame (max_frame_size)", "1 MiB", "as in the peer tonic"),
        server("gRPC: largest message (max_decoding_message_size)", "no limit", "the default is 4 MiB"),
        server("JSON: largest body (DefaultBodyLimit)", "64 MiB", "the default is 2 MB"),
        server(
            "JSON: HTTP versions (axum::serve)",
            "HTTP/1.1 and HTTP/2 by their first bytes",
            "the default",
        ),
        server("JSON: windows and frames of HTTP/2", "hyper's", "axum::serve has no options for them"),
        server(
            "JSON: bodies",
            "axum's `Json` with structs that derive serde's traits",
            "what its documentation shows",
        ),
        server("TCP_NODELAY", "on", "axum::serve leaves it off by default"),
        (
            "server",
            "threads (worker_threads)",
            match default_threads() {
                1 => "1, tokio's current-thread runtime".to_owned(),
                threads => format!("{threads}, tokio's multi-thread runtime"),
            },
            "one for each processor of the process; --threads says otherwise",
        ),
        server("compression, TLS, layers, tracing", "none", "the default"),
        server("allocator", "the system's", "the default"),
        server(
            "build ([profile.release])",
            "opt-level = 3, lto = \"thin\", codegen-units = 1",
            "as this workspace",
        ),
    ]
}
