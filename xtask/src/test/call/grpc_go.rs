//! What is asked of grpc-go's examples.

use super::case::{Case, PLAIN};
use super::load::{FINE, Load};
use super::servers::Kind;

const FEATURE: &str = r#"{"latitude": 409146138, "longitude": -746188906}"#;
/// A rectangle that has this one alone.
const AROUND: &str = concat!(
    r#"{"lo": {"latitude": 409146137, "longitude": -746188907}, "#,
    r#""hi": {"latitude": 409146139, "longitude": -746188905}}"#
);
const FOUND: &str = concat!(
    r#"{"name":"Berkshire Valley Management Area Trail, Jefferson, NJ, USA","#,
    r#""location":{"latitude":409146138,"longitude":-746188906}}"#
);

const GREETER: &str = "EXAMPLES/helloworld/helloworld/helloworld.proto";
const HEALTH: &str = "../../crates/services/proto/grpc/health/v1/health.proto";
const GREETING: &[&str] =
    &["helloworld.Greeter/SayHello", "--proto", GREETER, "-d", r#"{"name": "Ada"}"#, "--compact"];

pub(super) const CASES: &[Case] = &[
    Case {
        server: Kind::Reflection,
        words: &["list"],
        says: &["grpc.examples.echo.Echo\ngrpc.reflection.v1.ServerReflection\n\
             grpc.reflection.v1alpha.ServerReflection\nhelloworld.Greeter\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Reflection,
        words: &["list", "grpc.examples.echo.Echo"],
        says: &["grpc.examples.echo.Echo/BidirectionalStreamingEcho\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Reflection,
        words: &["describe", "helloworld.Greeter.SayHello"],
        says: &["rpc SayHello(helloworld.HelloRequest) returns (helloworld.HelloReply);", "string name = 1;"],
        ..PLAIN
    },
    Case {
        server: Kind::Reflection,
        words: &["helloworld.Greeter/SayHello", "-d", r#"{"name": "Ada"}"#, "--compact", "-v"],
        says: &["{\"message\":\"Hello Ada\"}\n", "* reflection "],
        ..PLAIN
    },
    Case {
        server: Kind::Reflection,
        words: &["grpc.examples.echo.Echo.BidirectionalStreamingEcho", "-d", "@-"],
        stdin: "{\"message\": \"a\"}\n{\"message\":\n\"b\"}{\"message\": \"c\"}",
        exit_code: 64 + 12,
        says: &["UNIMPLEMENTED (12)"],
    },
    Case {
        server: Kind::ErrorDetails,
        words: &["list"],
        exit_code: 1,
        says: &["the server does not support reflection"],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuide,
        words: &[
            "routeguide.RouteGuide/GetFeature",
            "--proto",
            "route_guide.proto",
            "--compact",
            "-d",
            FEATURE,
        ],
        says: &[FOUND],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuide,
        words: &["routeguide.RouteGuide/ListFeatures", "--proto", "route_guide.proto", "-d", AROUND],
        says: &[FOUND],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuide,
        words: &[
            "routeguide.RouteGuide/RecordRoute",
            "--proto",
            "route_guide.proto",
            "-d",
            "@-",
            "--compact",
        ],
        stdin: r#"{"latitude": 409146138, "longitude": -746188906}{"latitude": 1}"#,
        says: &["{\"pointCount\":2,\"featureCount\":1,\"distance\":"],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuide,
        words: &["routeguide.RouteGuide/RouteChat", "--proto", "route_guide.proto", "-d", "@-"],
        stdin: r#"{"location": {"latitude": 5}, "message": "a"}{"location": {"latitude": 5}, "message": "b"}"#,
        // It answers each note with all that were left at the same place.
        says: &[
            "{\"location\":{\"latitude\":5},\"message\":\"a\"}\n{\"location\":{\"latitude\":5},\"message\":\"a\"}\n\
             {\"location\":{\"latitude\":5},\"message\":\"b\"}\n",
        ],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuideTls,
        words: &[
            "routeguide.RouteGuide/GetFeature",
            "--proto",
            "route_guide.proto",
            "--cacert",
            "EXAMPLES/data/x509/ca_cert.pem",
            "--servername",
            "x.test.example.com",
            "-d",
            FEATURE,
            "--compact",
            "-v",
        ],
        says: &[FOUND, "* tls "],
        ..PLAIN
    },
    Case {
        server: Kind::RouteGuideTls,
        words: &["routeguide.RouteGuide/GetFeature", "--proto", "route_guide.proto", "--tls"],
        exit_code: 64 + 14,
        says: &["UNAVAILABLE (14)", "certificate"],
        ..PLAIN
    },
    // A name is greeted once. Why not again a detail of the status says.
    Case { server: Kind::ErrorDetails, words: GREETING, says: &["{\"message\":\"Hello Ada\"}\n"], ..PLAIN },
    Case {
        server: Kind::ErrorDetails,
        words: GREETING,
        exit_code: 64 + 8,
        says: &[r#"detail: google.rpc.QuotaFailure {"violations":[{"subject":"name:Ada""#],
        ..PLAIN
    },
    Case { server: Kind::Greeter, words: GREETING, says: &["{\"message\":\"Hello Ada\"}\n"], ..PLAIN },
    Case {
        server: Kind::Greeter,
        words: &["helloworld.Greeter/SayHello"],
        exit_code: 1,
        says: &["the server does not support reflection"],
        ..PLAIN
    },
    Case {
        server: Kind::Greeter,
        words: &["helloworld.Greeter/SayHelo", "--proto", GREETER],
        exit_code: 2,
        says: &["helloworld.Greeter has no method `SayHelo`; did you mean `SayHello`?"],
        ..PLAIN
    },
    Case {
        server: Kind::Greeter,
        words: &["grpc.health.v1.Health/Check", "--proto", HEALTH],
        exit_code: 64 + 12,
        says: &["UNIMPLEMENTED (12): unknown service grpc.health.v1.Health"],
        ..PLAIN
    },
    Case {
        server: Kind::Health,
        words: &["grpc.health.v1.Health/Check", "--proto", HEALTH],
        says: &["SERVING\"\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Health,
        words: &["grpc.health.v1.Health/Check", "--proto", HEALTH, "-d", r#"{"service": "no.Such"}"#],
        exit_code: 64 + 5,
        says: &["NOT_FOUND (5): unknown service"],
        ..PLAIN
    },
    Case {
        server: Kind::Health,
        words: &["grpc.health.v1.Health/Watch", "--proto", HEALTH, "--timeout", "700ms"],
        exit_code: 64 + 4,
        says: &["{\"status\":\"SERVING\"}\n", "{\"status\":\"NOT_SERVING\"}\n", "DEADLINE_EXCEEDED (4)"],
        ..PLAIN
    },
];

pub(super) const LOADS: &[Load] = &[
    Load {
        server: Kind::Reflection,
        words: &["--call", "helloworld.Greeter/SayHello", "-d", r#"{"name": "{{.UUID}}"}"#, "-n", "300"],
        ok: 300,
        received: 300,
        ..FINE
    },
    Load {
        server: Kind::Reflection,
        words: &["--call", "helloworld.Greeter.SayHello", "--rps", "200..400/1s", "-z", "1s"],
        ok: 300,
        received: 300,
        ..FINE
    },
    Load {
        server: Kind::RouteGuideTls,
        words: &[
            "--call",
            "routeguide.RouteGuide/RecordRoute",
            "--proto",
            "route_guide.proto",
            "--cacert",
            "EXAMPLES/data/x509/ca_cert.pem",
            "--servername",
            "x.test.example.com",
            "-d",
            r#"{"latitude": 1} {"latitude": {{.MessageNumber}}}"#,
            "--messages",
            "5",
            "-n",
            "50",
            "-c",
            "4",
        ],
        ok: 50,
        received: 50,
        ..FINE
    },
    Load {
        server: Kind::RouteGuide,
        words: &[
            "--call",
            "routeguide.RouteGuide/GetFeature",
            "--proto",
            "route_guide.proto",
            "-d",
            FEATURE,
            "-n",
            "200",
        ],
        ok: 200,
        received: 200,
        ..FINE
    },
    Load {
        server: Kind::RouteGuide,
        words: &[
            "--call",
            "routeguide.RouteGuide/ListFeatures",
            "--proto",
            "route_guide.proto",
            "-d",
            AROUND,
            "-n",
            "200",
        ],
        ok: 200,
        received: 200,
        ..FINE
    },
    Load {
        server: Kind::RouteGuideTls,
        words: &[
            "--call",
            "routeguide.RouteGuide/RouteChat",
            "--proto",
            "route_guide.proto",
            "--cacert",
            "EXAMPLES/data/x509/ca_cert.pem",
            "--servername",
            "x.test.example.com",
            "-d",
            // A place of its own for each note: nothing but the note itself comes back.
            r#"{"location": {"latitude": {{.RequestNumber}}, "longitude": {{.MessageNumber}}}, "message": "a"}"#,
            "--messages",
            "4",
            "-n",
            "50",
            "-c",
            "5",
        ],
        ok: 50,
        received: 200,
        ..FINE
    },
    Load {
        server: Kind::Greeter,
        words: &[
            "--call",
            "helloworld.Greeter/SayHello",
            "--proto",
            GREETER,
            "-d",
            r#"{"name": "{{randomString 8}}"}"#,
            "--rps",
            "500",
            "-n",
            "250",
            "--connections",
            "3",
        ],
        ok: 250,
        received: 250,
        ..FINE
    },
    Load {
        server: Kind::Greeter,
        words: &["--call", "grpc.health.v1.Health/Check", "--proto", HEALTH, "-n", "40"],
        exit_code: 1,
        failed: Some(("UNIMPLEMENTED", 40)),
        ..FINE
    },
    Load {
        server: Kind::Health,
        words: &["--call", "grpc.health.v1.Health/Check", "--proto", HEALTH, "-n", "200"],
        ok: 200,
        received: 200,
        ..FINE
    },
];
