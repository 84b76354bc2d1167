//! What is asked of `xtask/suites/cpp`: gRPC C++, whose reflection is v1alpha alone.

use super::case::{Case, PLAIN};
use super::load::{FINE, Load};
use super::servers::Kind;

pub(super) const CASES: &[Case] = &[
    Case {
        server: Kind::Cpp,
        words: &["list"],
        says: &["grpc.reflection.v1alpha.ServerReflection\nsuite.Greeter\n"],
        ..PLAIN
    },
    Case {
        server: Kind::Cpp,
        words: &["suite.Greeter/Greet", "-d", r#"{"name": "Ada", "ages": {"a": 1}}"#, "--compact", "-v"],
        says: &[
            "{\"text\":\"hello Ada\",\"at\":\"1970-01-01T00:00:01Z\",\
             \"more\":{\"@type\":\"type.googleapis.com/suite.Detail\",\"names\":[\"a\"]}}\n",
            "< greeter: c++\n",
            "< trailer greeted-bin: AAE\n",
        ],
        ..PLAIN
    },
    Case {
        server: Kind::Cpp,
        words: &["suite.Greeter/GreetAll", "-d", "@-"],
        stdin: r#"{"number": "5"} {"name": "x"}"#,
        says: &["{\"text\":\"hello 5\"", "{\"text\":\"hello x\""],
        ..PLAIN
    },
    Case {
        server: Kind::Cpp,
        words: &["suite.Greeter/Greet", "-d", r#"{"name": "nobody"}"#],
        exit_code: 64 + 9,
        says: &["FAILED_PRECONDITION (9): there is nobody", "details (not a google.rpc.Status): /w=="],
        ..PLAIN
    },
    Case {
        server: Kind::Cpp,
        words: &["describe", "suite.Greeting"],
        says: &["  map<string, int32> ages = 3;\n", "  oneof who {\n    string name = 1;\n"],
        ..PLAIN
    },
];

pub(super) const LOADS: &[Load] = &[Load {
    server: Kind::Cpp,
    words: &[
        "--call",
        "suite.Greeter/GreetAll",
        "-d",
        r#"{"number": "{{.RequestNumber}}"}"#,
        "--messages",
        "10",
        "-n",
        "100",
        "--connections",
        "2",
        "-m",
        "x-request: {{.RequestNumber}}",
    ],
    ok: 100,
    received: 1000,
    ..FINE
}];
