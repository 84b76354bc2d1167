//! HTTP/2 settings common to clients and servers.

use thalweg_engine::http2;

/// Settings made by the application; the engine's defaults apply to the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Http2Options {
    pub(super) stream_window: Option<u32>,
    pub(super) connection_window: Option<u32>,
    pub(super) max_frame_size: Option<u32>,
    pub(super) max_header_list_size: Option<u32>,
    pub(super) header_table_size: Option<u32>,
    pub(super) max_concurrent_streams: Option<u32>,
    /// Maximum number of stream resets that the peer may provoke.
    pub(super) max_provoked_resets: Option<usize>,
}

/// RFC 9113 §6.9.1.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// RFC 9113 §6.9.2: the initial value for every connection.
const CONNECTION_WINDOW_MIN: u32 = 65_535;
/// RFC 9113 §4.2.
const FRAME_SIZE_MIN: u32 = 1 << 14;
const FRAME_SIZE_MAX: u32 = (1 << 24) - 1;

impl Http2Options {
    pub(super) fn apply(&self, config: &mut http2::Config) {
        if let Some(size) = self.stream_window {
            config.stream_window = size.min(WINDOW_MAX);
        }
        if let Some(size) = self.connection_window {
            config.connection_window = size.clamp(CONNECTION_WINDOW_MIN, WINDOW_MAX);
        }
        if let Some(size) = self.max_frame_size {
            config.max_frame_size = size.clamp(FRAME_SIZE_MIN, FRAME_SIZE_MAX);
        }
        if let Some(size) = self.max_header_list_size {
            config.max_header_list_size = size;
        }
        if let Some(size) = self.header_table_size {
            config.header_table_size = size;
        }
        if let Some(streams) = self.max_concurrent_streams {
            config.max_concurrent_streams = streams;
        }
        if let Some(resets) = self.max_provoked_resets {
            let resets = u32::try_from(resets).unwrap_or(u32::MAX);
            config.limits.glitches = resets.saturating_mul(config.limits.stream_error_cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_clamped() {
        let check = |options: Http2Options, expected: fn(&mut http2::Config)| {
            let (mut config, mut expected_config) = (http2::Config::default(), http2::Config::default());
            options.apply(&mut config);
            expected(&mut expected_config);
            assert_eq!(format!("{config:?}"), format!("{expected_config:?}"), "{options:?}");
        };
        let unset = Http2Options::default();
        check(unset, |_| {});
        check(Http2Options { stream_window: Some(70_000), ..unset }, |config| config.stream_window = 70_000);
        check(Http2Options { stream_window: Some(u32::MAX), ..unset }, |config| {
            config.stream_window = (1 << 31) - 1;
        });
        check(Http2Options { connection_window: Some(1 << 20), ..unset }, |config| {
            config.connection_window = 1 << 20;
        });
        check(Http2Options { connection_window: Some(1), ..unset }, |config| {
            config.connection_window = 65_535;
        });
        check(Http2Options { max_frame_size: Some(1), ..unset }, |config| config.max_frame_size = 16_384);
        check(Http2Options { max_frame_size: Some(u32::MAX), ..unset }, |config| {
            config.max_frame_size = 16_777_215;
        });
        check(Http2Options { max_header_list_size: Some(9), ..unset }, |config| {
            config.max_header_list_size = 9;
        });
        check(Http2Options { header_table_size: Some(0), ..unset }, |config| config.header_table_size = 0);
        check(Http2Options { max_concurrent_streams: Some(7), ..unset }, |config| {
            config.max_concurrent_streams = 7;
        });
        check(Http2Options { max_provoked_resets: Some(20), ..unset }, |config| {
            config.limits.glitches = 200;
        });
        check(Http2Options { max_provoked_resets: Some(usize::MAX), ..unset }, |config| {
            config.limits.glitches = u32::MAX;
        });
    }
}
