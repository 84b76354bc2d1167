//! Protocol violations: one variant per rule that this endpoint checks.

/// A rule or bound that the peer violated. Whether it affects a stream or the connection depends on where it is
/// detected. Contained in [`ConnectionError`](crate::ConnectionError) and [`ResetCause`](crate::ResetCause).
///
/// Sections refer to [RFC 9113](https://www.rfc-editor.org/rfc/rfc9113) unless stated otherwise. The text of a
/// violation that ends the connection is sent as GOAWAY debug data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    // Start of the connection.
    /// The client's preface is missing (§3.4).
    #[error("the peer does not speak HTTP/2: the client preface is missing")]
    PrefaceMissing,
    /// The first frame is not SETTINGS (§3.4). HTTP/1 peers end up here.
    #[error("the peer does not speak HTTP/2: its first frame is not SETTINGS")]
    FirstFrameNotSettings,
    /// The first SETTINGS frame is an acknowledgement (§3.4).
    #[error("the first SETTINGS frame is an acknowledgement")]
    FirstSettingsAcknowledge,

    // Frames and streams.
    /// A frame is larger than this endpoint's SETTINGS_MAX_FRAME_SIZE (§4.2).
    #[error("a frame is larger than max_frame_size")]
    FrameTooLarge,
    /// A padded frame has no padding length (§6.1).
    #[error("padded frame without a padding length")]
    PaddingLengthMissing,
    /// Padding is longer than its frame (§6.1).
    #[error("padding is longer than the frame")]
    PaddingTooLong,
    /// PUSH_PROMISE was received although pushes are disabled (§6.6).
    #[error("PUSH_PROMISE, though pushes are disabled")]
    PushDisabled,
    /// More streams were opened than this endpoint's SETTINGS_MAX_CONCURRENT_STREAMS (§5.1.2).
    #[error("too many concurrent streams")]
    ConcurrentStreamsExceeded,

    // DATA.
    /// DATA on stream 0 (§6.1).
    #[error("DATA on stream 0")]
    DataOnConnection,
    /// DATA on an idle stream (§5.1).
    #[error("DATA on an idle stream")]
    DataOnIdleStream,
    /// DATA on a stream that was closed unused, since a higher one was opened before it (§5.1.1).
    #[error("DATA on a skipped stream identifier")]
    DataOnSkippedStream,
    /// DATA on a stream that both sides have ended (§5.1).
    #[error("DATA on a stream that has ended")]
    DataOnEndedStream,
    /// DATA on a stream that the peer itself has reset (§5.1).
    #[error("DATA on a stream that the peer has reset")]
    DataOnResetStream,
    /// DATA after END_STREAM, on a stream that this endpoint has not ended (§5.1).
    #[error("DATA after END_STREAM")]
    DataAfterEnd,
    /// DATA before the response's HEADERS (§8.1).
    #[error("DATA before the response's HEADERS")]
    DataBeforeHeaders,
    /// The body is shorter or longer than `content-length` says (§8.1.1).
    #[error("body length differs from `content-length`")]
    BodyLengthMismatch,
    /// DATA beyond the connection's flow-control window (§6.9.1).
    #[error("DATA exceeds the connection's window")]
    ConnectionWindowExceeded,
    /// DATA beyond the stream's flow-control window (§6.9.1).
    #[error("DATA exceeds the stream's window")]
    StreamWindowExceeded,

    // HEADERS and CONTINUATION.
    /// HEADERS on stream 0 (§6.2).
    #[error("HEADERS on stream 0")]
    HeadersOnConnection,
    /// HEADERS on a stream that is not open and that the peer may not open (§5.1.1).
    #[error("HEADERS on a stream that the peer may not open")]
    HeadersOnUnopenableStream,
    /// HEADERS on a stream that was closed unused, since a higher one was opened before it (§5.1.1).
    #[error("HEADERS on a skipped stream identifier")]
    HeadersOnSkippedStream,
    /// HEADERS on a stream that both sides have ended (§5.1).
    #[error("HEADERS on a stream that has ended")]
    HeadersOnEndedStream,
    /// HEADERS on a stream that the peer itself has reset (§5.1).
    #[error("HEADERS on a stream that the peer has reset")]
    HeadersOnResetStream,
    /// HEADERS after END_STREAM, on a stream that this endpoint has not ended (§5.1).
    #[error("HEADERS after END_STREAM")]
    HeadersAfterEnd,
    /// HEADERS too short for the priority that their flag announces (§6.2).
    #[error("HEADERS too short for its priority")]
    HeadersPriorityMissing,
    /// A stream depends on itself (RFC 7540 §5.3.1).
    #[error("a stream depends on itself")]
    SelfDependency,
    /// Another frame interrupts a header block (§6.10).
    #[error("a header block is interrupted by another frame")]
    HeaderBlockInterrupted,
    /// CONTINUATION on a different stream than its HEADERS (§6.10).
    #[error("CONTINUATION on a different stream from its HEADERS")]
    ContinuationOnOtherStream,
    /// CONTINUATION without preceding HEADERS (§6.10).
    #[error("CONTINUATION without HEADERS before it")]
    ContinuationStray,
    /// A header block could not be decoded (§4.3).
    #[error("a header block could not be decoded")]
    HeaderBlockInvalid,
    /// A header list is larger than this endpoint's SETTINGS_MAX_HEADER_LIST_SIZE (§10.5.1).
    #[error("the header list is larger than max_header_list_size")]
    HeaderListTooLarge,
    /// An informational response ends the stream (§8.1).
    #[error("an informational response ends the stream")]
    InformationalEndsStream,
    /// Trailers do not end the stream (§8.1).
    #[error("trailers do not end the stream")]
    TrailersWithoutEnd,
    /// A response has status 101, which does not exist in HTTP/2 (§8.6).
    #[error("status 101 does not exist in HTTP/2")]
    SwitchingProtocols,

    // Fields of a header list.
    /// A field name is empty or holds a character that is not allowed (§8.2.1).
    #[error("empty field name, or one with a forbidden character, such as an upper-case letter")]
    FieldNameInvalid,
    /// A field value holds NUL, CR or LF (§8.2.1).
    #[error("field value with NUL, CR or LF")]
    FieldValueInvalid,
    /// A connection-specific field of HTTP/1 (§8.2.2).
    #[error("a connection-specific field")]
    FieldConnectionSpecific,
    /// `te` field other than `trailers` (§8.2.2).
    #[error("`te` field other than `trailers`")]
    TeInvalid,
    /// A pseudo-header is unknown, or not allowed in this message (§8.3).
    #[error("unknown pseudo-header field")]
    PseudoHeaderUnknown,
    /// A pseudo-header occurs twice (§8.3).
    #[error("duplicate pseudo-header field")]
    PseudoHeaderRepeated,
    /// A pseudo-header follows a regular field (§8.3).
    #[error("pseudo-header field after a regular field")]
    PseudoHeaderMisplaced,
    /// Trailers contain a pseudo-header (§8.1).
    #[error("pseudo-header field in trailers")]
    PseudoHeaderInTrailers,
    /// A request has no `:method` (§8.3.1).
    #[error("`:method` is missing")]
    MethodMissing,
    /// `:method` is not a token (§8.3.1).
    #[error("`:method` is not a token")]
    MethodInvalid,
    /// A request has no `:scheme` (§8.3.1).
    #[error("`:scheme` is missing")]
    SchemeMissing,
    /// A request has no `:path` (§8.3.1).
    #[error("`:path` is missing")]
    PathMissing,
    /// `:path` does not start with a slash (§8.3.1).
    #[error("`:path` does not start with a slash")]
    PathInvalid,
    /// CONNECT with pseudo-headers other than `:authority` (§8.5).
    #[error("CONNECT takes `:authority` and neither `:scheme` nor `:path`")]
    ConnectInvalid,
    /// A response has no `:status` (§8.3.2).
    #[error("`:status` is missing")]
    StatusMissing,
    /// `:status` is not a three-digit number (§8.3.2).
    #[error("`:status` is not a number of three digits")]
    StatusInvalid,
    /// `content-length` is not a number (§8.1.1).
    #[error("`content-length` is not a number")]
    ContentLengthInvalid,
    /// Two `content-length` differ (§8.1.1).
    #[error("conflicting `content-length` fields")]
    ContentLengthAmbiguous,

    // PRIORITY and RST_STREAM.
    /// PRIORITY on stream 0 (§6.3).
    #[error("PRIORITY on stream 0")]
    PriorityOnConnection,
    /// PRIORITY is not 5 bytes long (§6.3).
    #[error("PRIORITY is not 5 bytes long")]
    PriorityLength,
    /// RST_STREAM is not 4 bytes long (§6.4).
    #[error("RST_STREAM is not 4 bytes long")]
    RstStreamLength,
    /// RST_STREAM on an idle stream (§6.4).
    #[error("RST_STREAM on an idle stream")]
    RstStreamOnIdleStream,

    // SETTINGS.
    /// SETTINGS on a stream (§6.5).
    #[error("SETTINGS on a stream")]
    SettingsOnStream,
    /// The length of SETTINGS is not a multiple of 6 bytes (§6.5).
    #[error("SETTINGS is not a multiple of 6 bytes long")]
    SettingsLength,
    /// The acknowledgement of SETTINGS is not empty (§6.5).
    #[error("SETTINGS acknowledgement is not empty")]
    SettingsAckNotEmpty,
    /// SETTINGS were not acknowledged within [`Config::settings_timeout`](crate::Config::settings_timeout) (§6.5.3).
    #[error("SETTINGS were not acknowledged in time")]
    SettingsNotAcknowledged,
    /// SETTINGS_ENABLE_PUSH is neither 0 nor, from a client, 1 (§6.5.2).
    #[error("invalid SETTINGS_ENABLE_PUSH value")]
    EnablePushInvalid,
    /// SETTINGS_MAX_FRAME_SIZE out of range (§6.5.2).
    #[error("SETTINGS_MAX_FRAME_SIZE out of range")]
    MaxFrameSizeInvalid,
    /// SETTINGS_INITIAL_WINDOW_SIZE above 2^31 - 1 (§6.5.2).
    #[error("SETTINGS_INITIAL_WINDOW_SIZE above 2^31 - 1")]
    InitialWindowTooLarge,
    /// SETTINGS_INITIAL_WINDOW_SIZE makes a stream's window overflow (§6.9.2).
    #[error("SETTINGS_INITIAL_WINDOW_SIZE overflows a window")]
    InitialWindowOverflow,

    // PING, GOAWAY and WINDOW_UPDATE.
    /// PING on a stream (§6.7).
    #[error("PING on a stream")]
    PingOnStream,
    /// PING is not 8 bytes long (§6.7).
    #[error("PING is not 8 bytes long")]
    PingLength,
    /// GOAWAY on a stream (§6.8).
    #[error("GOAWAY on a stream")]
    GoAwayOnStream,
    /// GOAWAY is shorter than 8 bytes (§6.8).
    #[error("GOAWAY is shorter than 8 bytes")]
    GoAwayLength,
    /// A GOAWAY raised the last stream identifier of an earlier one (§6.8).
    #[error("GOAWAY increased its last-stream-id")]
    GoAwayRaised,
    /// WINDOW_UPDATE is not 4 bytes long (§6.9).
    #[error("WINDOW_UPDATE is not 4 bytes long")]
    WindowUpdateLength,
    /// WINDOW_UPDATE on an idle stream (§5.1).
    #[error("WINDOW_UPDATE on an idle stream")]
    WindowUpdateOnIdleStream,
    /// WINDOW_UPDATE of 0 on a stream (§6.9).
    #[error("WINDOW_UPDATE of 0")]
    StreamWindowUpdateZero,
    /// WINDOW_UPDATE of 0 on the connection (§6.9).
    #[error("WINDOW_UPDATE of 0 on the connection")]
    ConnectionWindowUpdateZero,
    /// WINDOW_UPDATE overflows a stream's window (§6.9.1).
    #[error("the stream's window overflows")]
    StreamWindowOverflow,
    /// WINDOW_UPDATE overflows the connection's window (§6.9.1).
    #[error("the connection's window overflows")]
    ConnectionWindowOverflow,

    // Excessive cost.
    /// Too many requests were reset before they could be served (§10.5, CVE-2023-44487).
    #[error("too many requests are reset before they can be served")]
    ResetsExceeded,
    /// More CONTINUATION frames than [`Limits::continuations_max`](crate::Limits::continuations_max) (§10.5.1,
    /// CVE-2024-27316).
    #[error("too many CONTINUATION frames")]
    ContinuationsExceeded,
    /// A header block in several frames is longer than
    /// [`Limits::header_block_len_max`](crate::Limits::header_block_len_max) (§10.5.1).
    #[error("header block too long")]
    HeaderBlockTooLong,
    /// More SETTINGS entries than [`Limits::settings_entries_max`](crate::Limits::settings_entries_max) (§10.5).
    #[error("SETTINGS with too many entries")]
    SettingsEntriesExceeded,
    /// More queued replies than [`Limits::queued_replies_max`](crate::Limits::queued_replies_max), because the peer
    /// provokes them and does not read (§10.5).
    #[error("too many control frames queued for a peer that does not read")]
    RepliesUnread,
    /// Too many DATA frames with hardly any data (§10.5).
    #[error("too many tiny DATA frames")]
    TinyDataExceeded,
    /// Too many frames of unknown types (§10.5).
    #[error("too many unknown frames")]
    UnknownFramesExceeded,
    /// Too many streams that were opened after this endpoint's last GOAWAY (§6.8, §10.5).
    #[error("too many streams opened after GOAWAY")]
    StreamsAfterGoAway,
    /// Too many CONNECT requests, which are not supported (§10.5).
    #[error("too many CONNECT requests")]
    ConnectsExceeded,
    /// Too many informational responses (§10.5).
    #[error("too many informational responses")]
    InformationalExceeded,
    /// Too many header blocks without effect: too large, on closed streams, or with more to copy than their length
    /// (§10.5).
    #[error("too many header blocks on closed streams")]
    HeadersUseless,
    /// Too many PRIORITY frames (§10.5).
    #[error("too many PRIORITY frames")]
    PriorityExceeded,
    /// Too many RST_STREAMs on closed streams (§10.5).
    #[error("too many RST_STREAMs on closed streams")]
    RstStreamExceeded,
    /// Too many SETTINGS frames (§10.5).
    #[error("too many SETTINGS frames")]
    SettingsExceeded,
    /// Too many acknowledgements of SETTINGS (§10.5).
    #[error("too many acknowledgements of SETTINGS")]
    SettingsAcksExceeded,
    /// Too many PINGs (§10.5). gRPC clients recognize this text and send fewer PINGs (gRFC A8).
    #[error("too_many_pings")]
    PingsExceeded,
    /// Too many GOAWAYs (§10.5).
    #[error("too many GOAWAYs")]
    GoAwaysExceeded,
    /// Too many WINDOW_UPDATEs (§10.5).
    #[error("too many WINDOW_UPDATEs")]
    WindowUpdatesExceeded,
}
