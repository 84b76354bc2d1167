//! Input from web clients: paths, queries and bodies of transcoded requests, and messages in envelopes.

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use thalweg::{Encoding, EncodingSet};
use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Schema, sources};
use thalweg_web::compression::{self, Compression};
use thalweg_web::envelope::{self, EnvelopeReader, Part, ResponseReader};
use thalweg_web::transcoding::{
    Content, Lookup, RequestError, RequestOptions, Router, Rules, Values, ValuesError, request, response,
};
use thalweg_web::{connect, grpc_web};

use super::features::{Features, feature};

/// The necessary part of `google/api/http.proto`, and a service with paths of all kinds.
const ANNOTATIONS: &str = r#"
    syntax = "proto3"; package google.api;
    import "google/protobuf/descriptor.proto";
    extend google.protobuf.MethodOptions { HttpRule http = 72295728; }
    message HttpRule {
        string get = 2; string put = 3; string post = 4; string patch = 6; string body = 7;
        string response_body = 12; repeated HttpRule additional_bindings = 11;
    }
    message HttpBody { string content_type = 1; bytes data = 2; }"#;
const SOURCE: &str = r#"
    syntax = "proto3"; package f;
    import "google/api/annotations.proto";
    import "google/protobuf/duration.proto";
    import "google/protobuf/field_mask.proto";
    import "google/protobuf/struct.proto";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    enum Kind { NONE = 0; PLANT = 1; }
    message M {
        string text = 1; sint64 long = 2; repeated int32 numbers = 3; double real = 4; bool truth = 5; bytes raw = 6;
        Kind kind = 7; M inner = 8; repeated M inners = 9; map<string, M> by_name = 10; map<int32, string> names = 11;
        oneof either { string left = 12; M right = 13; }
        google.protobuf.Timestamp time = 14; google.protobuf.Duration span = 15;
        google.protobuf.FieldMask update_mask = 16;
        google.protobuf.Struct object = 17; google.protobuf.Value value = 18; google.protobuf.StringValue box = 19;
        optional int32 maybe = 20; google.api.HttpBody body = 21; float small = 22; uint64 unsigned = 23;
    }
    service S {
        rpc A(M) returns (M) {
            option (google.api.http) = {
                post: "/whole" body: "*"
                additional_bindings { get: "/{text}/a/{inner.text=x/**}/y:verb" }
                additional_bindings { get: "/k/{kind}/{truth}/{real}/{raw}/{long}" }
                additional_bindings { patch: "/p/{inner.long}" body: "inner" }
                additional_bindings { put: "/n/{text=**}" body: "numbers" response_body: "inners" }
                additional_bindings { put: "/b/{left}" body: "body" response_body: "body" }
                additional_bindings { get: "/q" response_body: "by_name" }
                additional_bindings { post: "/w/{text}" body: "*" response_body: "value" }
            };
        }
    }"#;

fn router() -> &'static Router {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    ROUTER.get_or_init(|| {
        let read = |name: &str| match name {
            "f.proto" => Some(SOURCE.to_owned()),
            "google/api/annotations.proto" => Some(ANNOTATIONS.to_owned()),
            _ => None,
        };
        let set = sources::compile(&["f.proto"], read).expect("the source is right");
        let schema = Schema::from_descriptor_set(&set).expect("the descriptors are right");
        Router::new(Rules::new(&schema, ["f.S"]).expect("the annotations are right"))
    })
}

const METHODS: [Method; 4] = [Method::GET, Method::POST, Method::PUT, Method::PATCH];

/// An input is a byte with the method and the options, a line with path and query, and the body.
pub(super) fn requests_corpus() -> Vec<Vec<u8>> {
    const REQUESTS: &[(u8, &str, &str)] = &[
        (0, "/a%20b/a/x/1/%2F/y:verb?long=-5&numbers=1&numbers=2&inner.kind=PLANT&by_name[a].text=b", ""),
        (
            0,
            "/k/PLANT/true/1e3/AP8_/-7?time=2024-02-29T12:00:00.5Z&span=1.5s&updateMask=a,b.c&box=+&maybe=0",
            "",
        ),
        (0, "/q?$alt=json&names[1]=x&names[-2]=%25&left=%C3%A9&small=NaN&unsigned=18446744073709551615", ""),
        (
            1,
            "/whole",
            r#"{"text":"\u00e9\n","long":"-9007199254740993","numbers":[1,2],"inner":{"inners":[{},{"truth":true}]},
            "byName":{"a":{"raw":"AQ=="}},"right":{"maybe":0},"object":{"a":[1,null,"b",{"c":true}]},"value":[{}]}"#,
        ),
        (3, "/p/5", r#"{"text":null,"inner":{"kind":"NONE","box":"x"},"names":{"7":"seven"}}"#),
        (2, "/n/a/b/?text=c", "[1, 2, 3]"),
        (2, "/b/l?truth=1&real=-0.5", "\0\u{1}raw"),
        (1, "/w/%00?", r#"{"time":"1970-01-01T00:00:00Z"}"#),
        (1 | 4, "/whole?nothing=1", r#"{"nothing":{"a":[1]},"kind":"WHAT"}"#),
        (1, "/whole", "{\"text\":\"a\"}\n{\"text\":\"]\"} [1,{}] \"\\\"\" 7"),
        (1, "/whole", "[{\"text\":\"a\"},{}]"),
    ];
    let input = |(mode, target, body): &(u8, &str, &str)| {
        [&[*mode][..], target.as_bytes(), b"\n", body.as_bytes()].concat()
    };
    REQUESTS.iter().map(input).collect()
}

pub(super) fn requests(data: &[u8]) -> Features {
    let mut features = Features::new();
    let Some((&mode, rest)) = data.split_first() else { return features };
    let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let body = rest.get(line + 1..).unwrap_or_default();
    assert_same_values_when_split(body, mode & 8 != 0);
    let Ok(target) = str::from_utf8(&rest[..line]) else { return features };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let router = router();
    let route = match router.find(&METHODS[usize::from(mode & 3)], path) {
        Lookup::Route(route) => route,
        Lookup::MethodNotAllowed { allowed } => return Features::from([feature(("405", allowed.len()))]),
        Lookup::NotFound => return Features::from([feature(("404", path.matches('/').count().min(6)))]),
    };
    let binding = route.binding();
    let input = router.rules().input(binding);
    let parse = ParseOptions::default().ignore_unknown(mode & 4 != 0);
    let options = RequestOptions::default().parse(parse);
    let content = Content { content_type: "a/b".to_owned(), data: Bytes::copy_from_slice(body) };
    let mut wire = b"before".to_vec();
    let written = request::to_wire(router.rules(), &route, query, &content, &options, &mut wire);
    let wire = wire.split_off(6);
    // Names of nested messages may be longer or shorter than their encoding: a packed double takes eight bytes.
    assert!(wire.len() <= 64 + 16 * data.len(), "{} bytes became {}", data.len(), wire.len());
    features.insert(feature((binding.template().to_string(), written.as_ref().err().map(error_kind))));
    if written.is_err() {
        assert!(wire.is_empty());
        return features;
    }
    let as_json = json::from_wire(input, &wire).unwrap_or_else(|error| panic!("{error}: {target}"));
    features
        .extend(as_json.split('"').skip(1).step_by(2).map(|name| feature((name.len().min(12), mode & 3))));
    // The same message as a whole body is the same request.
    let complete = match router.find(&Method::POST, "/whole") {
        Lookup::Route(route) => route,
        found => panic!("{found:?}"),
    };
    let content = Content { content_type: String::new(), data: as_json.clone().into() };
    let mut reparsed = Vec::new();
    request::to_wire(router.rules(), &complete, "", &content, &options, &mut reparsed)
        .unwrap_or_else(|error| panic!("{error}: {as_json}"));
    assert_eq!(json::from_wire(input, &reparsed).as_deref(), Ok(&*as_json), "{target}");
    // It is also a response. Defaults make it longer, within the limit.
    let print = PrintOptions::default().defaults(mode & 16 != 0).len_max(1 << 20);
    if let Ok(content) = response::from_wire(router.rules(), binding, &wire.into(), &print) {
        assert!(content.data.len() <= print.len_max);
        features.insert(feature((content.content_type.len(), content.data.first())));
    }
    features
}

/// An input is the query of a unary call by GET.
pub(super) fn connect_get_corpus() -> Vec<Vec<u8>> {
    const QUERIES: [&str; 5] = [
        "connect=v1&encoding=json&message=%7B%22a%22%3A+1%7D",
        "message=CAE%3D&base64=1&encoding=proto&compression=identity&connect=v1",
        "connect=v1&encoding=msgpack&base64=1&message=gaFhAQ",
        "connect=v1&base64=1&compression=gzip&encoding=proto&message=H4sIAAAAAAAAA0tMSk4BAJHWjWMFAAAA",
        "connect=v2&encoding=x&message",
    ];
    QUERIES.map(|query| query.as_bytes().to_vec()).into()
}

/// An accepted call is the same after writing and reading, and decompresses within its limit.
pub(super) fn connect_get(data: &[u8]) -> Features {
    const RULES: connect::Rules<'_> = connect::Rules {
        codecs: &["proto", "json", "msgpack"],
        requires_version: false,
        accepts: EncodingSet::ALL,
        offers: EncodingSet::ALL,
    };
    const SIZE_MAX: usize = 1000;
    let read = |uri: &Uri| match connect::read_request(&Method::GET, uri, &HeaderMap::new(), &RULES) {
        Ok(Some(head)) => match head.shape {
            connect::Shape::Get { message } => Ok((head.codec, head.encoding, message)),
            shape => panic!("{shape:?} of a GET"),
        },
        Ok(None) => Err("none of Connect's".to_owned()),
        Err(refusal) => {
            Err(format!("{refusal:?}").chars().filter(char::is_ascii_alphabetic).take(60).collect())
        }
    };
    let Ok(uri) = Uri::try_from([b"/f.S/A?", data].concat()) else { return Features::new() };
    let (codec, encoding, message) = match read(&uri) {
        Ok(head) => head,
        Err(refused) => return Features::from([feature(refused)]),
    };
    assert!(message.len() <= data.len());
    let plain = compression::decompress(encoding, message.clone(), SIZE_MAX);
    assert!(plain.as_ref().map_or(true, |plain| plain.len() <= SIZE_MAX));
    let call = connect::Call {
        path: "/f.S/A",
        codec,
        timeout: None,
        compression: Compression::NONE,
        accepts: EncodingSet::ALL,
        metadata: &HeaderMap::new(),
    };
    let written = call.get(&message).expect("received in a query");
    assert_eq!(read(written.uri()), Ok((codec, Encoding::Identity, message.clone())));
    Features::from([feature((
        codec,
        encoding.name(),
        message.len().min(8),
        plain.map_err(|error| error.code()),
    ))])
}

/// A problem up to its quoted input, which may be anything.
fn error_kind(error: &RequestError) -> String {
    let text = error.to_string();
    let words =
        text.split([' ', '`', '"', '\'']).filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    words.take(8).collect::<Vec<_>>().join(" ")
}

/// The values of a body do not depend on its pieces.
fn assert_same_values_when_split(body: &[u8], takes_array: bool) {
    const SIZE_MAX: usize = 1000;
    let values = |pieces: [&[u8]; 2]| -> Result<Vec<Bytes>, (Vec<Bytes>, ValuesError)> {
        let (mut values, mut found) = (Values::new(SIZE_MAX, takes_array), Vec::new());
        let mut take = |taken: Result<Option<Bytes>, ValuesError>| match taken {
            Ok(Some(value)) => {
                found.push(value);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(error),
        };
        let mut all = || {
            for piece in pieces {
                values.push(Bytes::copy_from_slice(piece));
                while take(values.take())? {}
            }
            while take(values.finish())? {}
            Ok(())
        };
        match all() {
            Ok(()) => Ok(found),
            Err(error) => Err((found, error)),
        }
    };
    let complete = values([body, b""]);
    let cut = body.split_at(body.len() / 2);
    match (&complete, &values([cut.0, cut.1])) {
        // The received size depends on the pieces.
        (Err((complete, ValuesError::TooLarge { .. })), Err((cut, ValuesError::TooLarge { .. }))) => {
            assert_eq!(complete, cut);
        }
        (complete, cut) => assert_eq!(complete, cut),
    }
    let (Ok(found) | Err((found, _))) = &complete;
    assert!(found.iter().all(|value| (1..=SIZE_MAX).contains(&value.len())));
    assert!(found.iter().map(Bytes::len).sum::<usize>() <= body.len());
}

/// A reader of a stream's messages.
trait Messages {
    fn push(&mut self, piece: Bytes);
    /// Returns the next part as text; an error is returned once, then nothing.
    fn take(&mut self) -> Result<Option<String>, String>;
    fn finish(&mut self) -> Result<(), String>;
}

macro_rules! messages {
    ($reader:ty) => {
        impl Messages for $reader {
            fn push(&mut self, piece: Bytes) {
                self.push(piece);
            }

            fn take(&mut self) -> Result<Option<String>, String> {
                let taken = self.take().map_err(|status| format!("{:?}", status.code()))?;
                Ok(taken.map(|part| format!("{part:?}")))
            }

            fn finish(&mut self) -> Result<(), String> {
                <$reader>::finish(self).map(drop).map_err(|status| format!("{:?}", status.code()))
            }
        }
    };
}

messages!(EnvelopeReader);
messages!(ResponseReader);

/// Maximum message size in bytes.
const MESSAGE_SIZE_MAX: usize = 2000;

/// An input is a byte that selects the reader, and a body.
fn reader(mode: u8) -> Box<dyn Messages> {
    let encoding = if mode & 8 == 0 { Encoding::Identity } else { Encoding::Gzip };
    let headers_of = |content_type: &'static str, encoding_name: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(encoding_name, HeaderValue::from_static(encoding.name()));
        headers
    };
    match mode & 7 {
        0 | 1 => Box::new(EnvelopeReader::new(0, encoding, MESSAGE_SIZE_MAX)),
        2 | 3 => {
            let headers = headers_of("application/connect+proto", "connect-content-encoding");
            let accepts = EncodingSet::ALL;
            let started =
                connect::read_response(StatusCode::OK, &headers, "proto", accepts, MESSAGE_SIZE_MAX);
            Box::new(started.expect("valid response headers").1)
        }
        4 | 5 => Box::new(EnvelopeReader::new(0, encoding, MESSAGE_SIZE_MAX).with_text(mode & 1 == 1)),
        6 => {
            let headers = headers_of("application/grpc-web+proto", "grpc-encoding");
            let started = grpc_web::read_response(
                StatusCode::OK,
                &headers,
                "proto",
                EncodingSet::ALL,
                MESSAGE_SIZE_MAX,
            );
            Box::new(started.expect("valid response headers").1)
        }
        _ => Box::new(EnvelopeReader::new(2, encoding, MESSAGE_SIZE_MAX)),
    }
}

/// All parts of a body, and how it ends.
fn read(mode: u8, body: &[u8], piece_len: usize) -> (Vec<String>, Result<(), String>) {
    let (mut reader, mut found) = (reader(mode), Vec::new());
    for piece in body.chunks(piece_len.max(1)) {
        reader.push(Bytes::copy_from_slice(piece));
        loop {
            match reader.take() {
                Ok(Some(part)) => found.push(part),
                Ok(None) => break,
                Err(error) => return (found, Err(error)),
            }
        }
    }
    let end = reader.finish();
    (found, end)
}

pub(super) fn envelopes(data: &[u8]) -> Features {
    let Some((&mode, body)) = data.split_first() else { return Features::new() };
    let complete = read(mode, body, body.len());
    let is_text = mode & 7 == 5;
    for piece_len in [1, 3, 64] {
        let cut = read(mode, body, piece_len);
        // Text in one piece is decoded before its messages are returned: an error in it comes first.
        let is_same = if is_text { cut.0.starts_with(&complete.0) } else { cut.0 == complete.0 };
        assert!(is_same && cut.1.is_ok() == complete.1.is_ok(), "{complete:?} and {cut:?}");
    }
    let mut features = Features::from([feature((mode & 15, complete.0.len().min(4), &complete.1))]);
    features.extend(complete.0.iter().map(|part| feature((mode & 7, part.len().min(12)))));
    if mode & 7 == 7 {
        assert_envelopes_round_trip(mode, body);
    }
    features
}

/// Writes the envelopes that were read and checks that reading them again gives the same.
fn assert_envelopes_round_trip(mode: u8, body: &[u8]) {
    let encoding = if mode & 8 == 0 { Encoding::Identity } else { Encoding::Gzip };
    let parts = |body: &[u8]| {
        let (mut reader, mut parts) = (EnvelopeReader::new(2, encoding, MESSAGE_SIZE_MAX), Vec::new());
        reader.push(Bytes::copy_from_slice(body));
        while let Ok(Some(part)) = reader.take() {
            parts.push(part);
        }
        parts
    };
    let (read, mut written) = (parts(body), Vec::new());
    for part in &read {
        let put = match part {
            Part::Message(message) => {
                envelope::put_message(message, &Compression::with(encoding), &mut written)
            }
            Part::End(end) => envelope::put(2, end, &mut written),
        };
        put.expect("short enough");
    }
    assert_eq!(parts(&written), read);
}

pub(super) fn envelopes_corpus() -> Vec<Vec<u8>> {
    let mut gzip = Vec::new();
    Encoding::Gzip.compress(&[b'a'; 300], &mut gzip);
    let envelope = |flags: u8, payload: &[u8]| {
        let mut envelope = Vec::new();
        envelope::put(flags, payload, &mut envelope).expect("short enough");
        envelope
    };
    let end = br#"{"error":{"code":"not_found","message":"a",
        "details":[{"type":"t","value":"YQ"}]},"metadata":{"a":["b"]}}"#;
    let bodies = [
        [envelope(0, b"abc"), envelope(0, b""), envelope(2, end)].concat(),
        [envelope(1, &gzip), envelope(0, b"x"), envelope(3, &gzip)].concat(),
        [envelope(0, b"abc"), envelope(2, b"{}")].concat(),
        [envelope(0, b"abc"), envelope(0x80, b"grpc-status: 0\r\nx-a: b\r\n")].concat(),
        b"AAAAAANhYmM=AAAAAAA=gAAAAA9ncnBjLXN0YXR1czogMA0K".to_vec(),
        envelope(0, &[7; 1500]),
        b"\0\xff\xff\xff\xff".to_vec(),
    ];
    let mut corpus = Vec::new();
    for body in &bodies {
        corpus.extend((0..16).map(|mode| [&[mode][..], body].concat()));
    }
    corpus
}
