//! What is asked of tonic, with services in the shape of its examples.

use super::case::{Case, PLAIN};
use super::load::{FINE, Load};
use super::servers::Kind;

const HELLO: &str = "helloworld.Greeter/SayHello";
const REPEATED: &str = "grpc.examples.echo.Echo/ServerStreamingEcho";
const ECHOED: &str = "grpc.examples.echo.Echo/BidirectionalStreamingEcho";
const WITH_TOKEN: &str = "grpc.examples.unaryecho.Echo/UnaryEcho";
const CA: &str = "EXAMPLES/data/x509/ca_cert.pem";
const NAME: &str = "x.test.example.com";
const CLIENT_CERT: &str = "EXAMPLES/data/x509/client_cert.pem";
const CLIENT_KEY: &str = "EXAMPLES/data/x509/client_key.pem";

/// Both features of the route guide lie within.
const EVERYWHERE: &str = r#"{"lo": {}, "hi": {"latitude": 900000000, "longitude": -1800000000}}"#;

pub(super) const CASES: &[Case] = &[
    Case {
        server: Kind::Tonic,
        words: &["list"],
        says: &["grpc.examples.echo.Echo\ngrpc.examples.unaryecho.Echo\ngrpc.health.v1.Health\n\
             grpc.reflection.v1.ServerReflection\nhelloworld.Greeter\nrouteguide.RouteGuide\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["describe", "routeguide.RouteGuide.RouteChat"],
        says: &["rpc RouteChat(stream routeguide.RouteNote) returns (stream routeguide.RouteNote);"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[HELLO, "-d", r#"{"name": "Ada"}"#, "--compact", "--compress", "gzip"],
        says: &["{\"message\":\"Hello Ada!\"}\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[HELLO],
        exit_code: 64 + 3,
        says: &[
            "INVALID_ARGUMENT (3): request contains invalid arguments\n",
            r#"google.rpc.BadRequest {"fieldViolations":[{"field":"name","description":"name cannot be empty"}]}"#,
            r#"detail: google.rpc.Help {"links":[{"description":"description of link","#,
            r#"detail: google.rpc.LocalizedMessage {"locale":"en-US","message":"message for the user"}"#,
        ],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[HELLO, "--format-error"],
        exit_code: 64 + 3,
        says: &[concat!(
            r#"{"code":3,"message":"request contains invalid arguments","details":["#,
            r#"{"@type":"type.googleapis.com/google.rpc.BadRequest","#,
            r#""fieldViolations":[{"field":"name","description":"name cannot be empty"}]},"#
        )],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[
            "routeguide.RouteGuide/GetFeature",
            "-d",
            r#"{"latitude": 407838351, "longitude": -746143763}"#,
        ],
        says: &["\"name\": \"Patriots Path, Mendham, NJ 07945, USA\""],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["routeguide.RouteGuide/ListFeatures", "-d", EVERYWHERE],
        says: &["{\"name\":\"Berkshire Valley ", "{\"name\":\"Patriots Path, "],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["routeguide.RouteGuide/ListFeatures"],
        exit_code: 64 + 3,
        says: &["INVALID_ARGUMENT (3): a rectangle has two corners"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["routeguide.RouteGuide/RecordRoute", "-d", "@-", "--compact"],
        stdin: r#"{"latitude": 409146138, "longitude": -746188906}{"latitude": 1}"#,
        says: &["{\"pointCount\":2,\"featureCount\":1}\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["routeguide.RouteGuide/RouteChat", "-d", "@-"],
        stdin: r#"{"location": {"latitude": 5}, "message": "a"}{"location": {"latitude": 5}, "message": "b"}"#,
        // It answers each note with all that were left at the same place.
        says: &[
            "{\"location\":{\"latitude\":5},\"message\":\"a\"}\n{\"location\":{\"latitude\":5},\"message\":\"a\"}\n\
             {\"location\":{\"latitude\":5},\"message\":\"b\"}\n",
        ],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[REPEATED, "-d", r#"{"message": "x"}"#, "--timeout", "500ms"],
        exit_code: 64 + 4,
        says: &["{\"message\":\"x\"}\n{\"message\":\"x\"}\n", "DEADLINE_EXCEEDED (4)"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["grpc.examples.echo.Echo/ClientStreamingEcho", "-d", "{}{}"],
        exit_code: 64 + 12,
        says: &["UNIMPLEMENTED (12): not implemented"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[ECHOED, "-d", "@-"],
        stdin: r#"{"message": "x"} {"message": "y"}"#,
        says: &["{\"message\":\"x\"}\n{\"message\":\"y\"}\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[WITH_TOKEN, "-d", r#"{"message": "x"}"#],
        exit_code: 64 + 16,
        says: &["UNAUTHENTICATED (16): No valid auth token"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[
            WITH_TOKEN,
            "-d",
            r#"{"message": "x"}"#,
            "-m",
            "authorization: Bearer some-secret-token",
            "--compact",
        ],
        says: &["{\"message\":\"x\"}\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["grpc.health.v1.Health/Check", "-d", r#"{"service": "routeguide.RouteGuide"}"#],
        says: &["\"status\": \"NOT_SERVING\""],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &["grpc.health.v1.Health/Check", "-d", r#"{"service": "no.Such"}"#],
        exit_code: 64 + 5,
        says: &["NOT_FOUND (5): service not registered"],
        ..PLAIN
    },
    Case {
        server: Kind::Tonic,
        words: &[
            "grpc.health.v1.Health/Watch",
            "-d",
            r#"{"service": "helloworld.Greeter"}"#,
            "--timeout",
            "300ms",
        ],
        exit_code: 64 + 4,
        says: &["{\"status\":\"SERVING\"}\n", "DEADLINE_EXCEEDED (4)"],
        ..PLAIN
    },
    Case {
        server: Kind::TonicTls,
        words: &[HELLO, "-d", r#"{"name": "Ada"}"#, "--cacert", CA, "--servername", NAME, "--compact", "-v"],
        says: &["{\"message\":\"Hello Ada!\"}\n", "* tls "],
        ..PLAIN
    },
    Case {
        server: Kind::TonicTls,
        words: &[HELLO, "-d", r#"{"name": "Ada"}"#, "--cacert", CA, "--servername", "elsewhere.example"],
        exit_code: 64 + 14,
        says: &["UNAVAILABLE (14)", "elsewhere.example"],
        ..PLAIN
    },
    Case {
        server: Kind::TonicMutualTls,
        words: &[HELLO, "-d", r#"{"name": "Ada"}"#, "--cacert", CA, "--servername", NAME],
        exit_code: 64 + 14,
        says: &["UNAVAILABLE (14)", "CertificateRequired"],
        ..PLAIN
    },
    Case {
        server: Kind::TonicMutualTls,
        words: &[
            ECHOED,
            "-d",
            r#"{"message": "x"}"#,
            "--cacert",
            CA,
            "--servername",
            NAME,
            "--cert",
            CLIENT_CERT,
            "--key",
            CLIENT_KEY,
        ],
        says: &["{\"message\":\"x\"}\n"],
        ..PLAIN
    },
];

pub(super) const LOADS: &[Load] = &[
    Load {
        server: Kind::Tonic,
        words: &[
            "--call",
            HELLO,
            "-d",
            r#"{"name": "{{.RequestNumber}}"}"#,
            "--compress",
            "gzip",
            "-n",
            "300",
        ],
        ok: 300,
        received: 300,
        ..FINE
    },
    Load {
        server: Kind::Tonic,
        words: &["--call", HELLO, "-n", "30", "-c", "3"],
        exit_code: 1,
        failed: Some(("INVALID_ARGUMENT", 30)),
        ..FINE
    },
    Load {
        server: Kind::Tonic,
        words: &["--call", "routeguide.RouteGuide/ListFeatures", "-d", EVERYWHERE, "-n", "200"],
        ok: 200,
        received: 400,
        ..FINE
    },
    Load {
        server: Kind::Tonic,
        words: &[
            "--call",
            "routeguide.RouteGuide/RecordRoute",
            "-d",
            r#"{"latitude": {{.MessageNumber}}}"#,
            "--messages",
            "20",
            "--rps",
            "200",
            "-n",
            "100",
        ],
        ok: 100,
        received: 100,
        ..FINE
    },
    Load {
        server: Kind::Tonic,
        words: &["--call", REPEATED, "-d", r#"{"message": "x"}"#, "--timeout", "300ms", "-n", "4", "-c", "2"],
        exit_code: 1,
        failed: Some(("DEADLINE_EXCEEDED", 4)),
        // Two within 300 ms, of one every 200 ms.
        received: 8,
        ..FINE
    },
    Load {
        server: Kind::Tonic,
        words: &[
            "--call",
            WITH_TOKEN,
            "-d",
            r#"{"message": "{{.UUID}}"}"#,
            "-m",
            "authorization: Bearer some-secret-token",
            "--rps",
            "100..300/1s",
            "-z",
            "1s",
        ],
        ok: 200,
        received: 200,
        ..FINE
    },
    Load {
        server: Kind::TonicMutualTls,
        words: &[
            "--call",
            ECHOED,
            "-d",
            r#"{"message": "{{.MessageNumber}}"}"#,
            "--messages",
            "10",
            "-n",
            "100",
            "--connections",
            "2",
            "--cacert",
            CA,
            "--servername",
            NAME,
            "--cert",
            CLIENT_CERT,
            "--key",
            CLIENT_KEY,
        ],
        ok: 100,
        received: 1000,
        ..FINE
    },
];
