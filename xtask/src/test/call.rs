//! `thalweg call`, and `thalweg load` of any method, at servers of other people: grpc-go's examples, with reflection,
//! without, and over TLS, and gRPC C++ with its reflection, which is v1alpha alone.

use std::fs;
use std::path::{Path, PathBuf};

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// One run of `thalweg call`.
struct Case {
    server: Kind,
    /// Behind the target.
    words: &'static [&'static str],
    /// What stdin gives, for `-d @-`.
    stdin: &'static str,
    exit_code: i32,
    /// What it prints, among other things, on stdout or stderr.
    says: &'static [&'static str],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// grpc-go's `features/reflection`.
    Reflection,
    /// grpc-go's `features/error_details`, which answers a name once.
    ErrorDetails,
    /// grpc-go's `route_guide`.
    RouteGuide,
    /// The same over TLS.
    RouteGuideTls,
    /// `xtask/suites/cpp`.
    Cpp,
}

const KINDS: [Kind; 5] =
    [Kind::Reflection, Kind::ErrorDetails, Kind::RouteGuide, Kind::RouteGuideTls, Kind::Cpp];

const FEATURE: &str = r#"{"latitude": 409146138, "longitude": -746188906}"#;
const FOUND: &str = concat!(
    r#"{"name":"Berkshire Valley Management Area Trail, Jefferson, NJ, USA","#,
    r#""location":{"latitude":409146138,"longitude":-746188906}}"#
);

/// Nothing on stdin, and it ends with OK.
const PLAIN: Case = Case { server: Kind::Reflection, words: &[], stdin: "", exit_code: 0, says: &[] };

const CASES: &[Case] = &[
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
        says: &["the server has no reflection"],
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
        words: &[
            "routeguide.RouteGuide/ListFeatures",
            "--proto",
            "route_guide.proto",
            "-d",
            concat!(
                r#"{"lo": {"latitude": 409146137, "longitude": -746188907}, "#,
                r#""hi": {"latitude": 409146139, "longitude": -746188905}}"#
            ),
        ],
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
            "CA",
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
        says: &["FAILED_PRECONDITION (9): there is nobody", "details that are no google.rpc.Status: /w=="],
        ..PLAIN
    },
    Case {
        server: Kind::Cpp,
        words: &["describe", "suite.Greeting"],
        says: &["  map<string, int32> ages = 3;\n", "  oneof who {\n    string name = 1;\n"],
        ..PLAIN
    },
];

/// One run of `thalweg load`, whose calls all end with OK.
struct Load {
    server: Kind,
    words: &'static [&'static str],
    calls: u64,
    /// Messages that come back in all.
    received: u64,
}

const LOADS: &[Load] = &[
    Load {
        server: Kind::Reflection,
        words: &["--call", "helloworld.Greeter/SayHello", "-d", r#"{"name": "{{.UUID}}"}"#, "-n", "300"],
        calls: 300,
        received: 300,
    },
    Load {
        server: Kind::Reflection,
        words: &["--call", "helloworld.Greeter.SayHello", "--rps", "200..400/1s", "-z", "1s"],
        calls: 300,
        received: 300,
    },
    Load {
        server: Kind::RouteGuideTls,
        words: &[
            "--call",
            "routeguide.RouteGuide/RecordRoute",
            "--proto",
            "route_guide.proto",
            "--cacert",
            "CA",
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
        calls: 50,
        received: 50,
    },
    Load {
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
        calls: 100,
        received: 1000,
    },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let thalweg = rust::thalweg(log)?;
    let examples = tools::grpc_go_examples(log)?;
    let mut servers = Vec::new();
    for kind in KINDS {
        let port = free_port()?;
        let job = match kind {
            Kind::Reflection => Job::new(tools::EXAMPLE_REFLECTION.get(log)?).words(&format!("-port {port}")),
            Kind::ErrorDetails => Job::new(tools::EXAMPLE_DETAILS.get(log)?).words(&format!("-port {port}")),
            Kind::RouteGuide => Job::new(tools::EXAMPLE_ROUTES.get(log)?).words(&format!("-port {port}")),
            Kind::RouteGuideTls => {
                Job::new(tools::EXAMPLE_ROUTES.get(log)?).words(&format!("-tls -port {port}"))
            }
            Kind::Cpp => Job::new(greeter(log)?).arg(port.to_string()),
        };
        servers.push((kind, port, Server::start(&job, port, log)?));
    }
    let port_of = |kind: Kind| servers.iter().find(|(of, ..)| *of == kind).map_or(0, |(_, port, _)| *port);
    let authority = examples.join("data/x509/ca_cert.pem");
    let run_as = |command: &str, server: Kind, words: &[&str], stdin: &str| {
        let job = Job::new(&thalweg).arg(command).arg(format!("localhost:{}", port_of(server)));
        let job = words.iter().fold(job, |job, word| match *word {
            "CA" => job.arg(&authority),
            word => job.arg(word),
        });
        let input = workspace::output().join("call.stdin");
        fs::write(&input, stdin)?;
        job.directory(workspace::suites()).stdin(input).seconds(30).output(log)
    };
    let run = |server: Kind, words: &[&str], stdin: &str| run_as("call", server, words, stdin);
    let mut failed = 0;
    for load in LOADS {
        let output = run_as("load", load.server, &[load.words, &["-O", "json"]].concat(), "")?;
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let came = (&result["ok"], &result["failed"], &result["messages_received"]);
        if !output.status.success() || came != (&load.calls.into(), &0.into(), &load.received.into()) {
            failed += 1;
            let (words, said) = (load.words.join(" "), String::from_utf8_lossy(&output.stderr).into_owned());
            log.line(format_args!("FAIL  load {words}: {}; {came:?}; {said}", output.status))?;
        }
    }
    for case in CASES {
        let output = run(case.server, case.words, case.stdin)?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let missing: Vec<_> = case.says.iter().filter(|part| !said.contains(**part)).collect();
        if output.status.code() != Some(case.exit_code) || !missing.is_empty() {
            failed += 1;
            let (words, code) = (case.words.join(" "), case.exit_code);
            log.line(format_args!(
                "FAIL  {words}: {}, not {code}; missing: {missing:?}\n{said}",
                output.status
            ))?;
        }
    }
    failed += usize::from(!second_greeting_is_refused(&examples, run, log)?);
    let cases = CASES.len() + 1 + LOADS.len();
    let account = format!("{} of {cases} cases at {} servers of others", cases - failed, KINDS.len());
    if failed == 0 { Ok(account) } else { Err(Failure::failed(account)) }
}

/// The example greets a name once, and then says by a detail of the status why not again.
fn second_greeting_is_refused(
    examples: &Path,
    run: impl Fn(Kind, &[&str], &str) -> Result<std::process::Output, Failure>,
    log: &Log,
) -> Result<bool, Failure> {
    let proto = examples.join("helloworld/helloworld/helloworld.proto");
    let proto = proto.display().to_string();
    let words = ["helloworld.Greeter/SayHello", "-d", r#"{"name": "Ada"}"#, "--proto", &proto];
    let first = run(Kind::ErrorDetails, &words, "")?;
    let second = run(Kind::ErrorDetails, &words, "")?;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let is_well = first.status.success()
        && second.status.code() == Some(64 + 8)
        && said.contains(r#"detail: google.rpc.QuotaFailure {"violations":[{"subject":"name:Ada""#);
    if !is_well {
        log.line(format_args!("FAIL  error details: {}, {}: {said}", first.status, second.status))?;
    }
    Ok(is_well)
}

/// gRPC C++ with reflection.
fn greeter(log: &Log) -> Result<PathBuf, Failure> {
    const PACKAGES: &str =
        "g++ make pkg-config libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc";
    tools::debian(PACKAGES, &["g++", "make", "pkg-config", "protoc", "grpc_cpp_plugin"], log)?;
    let folder = workspace::tools().join("greeter");
    let make = Job::new("make").arg("--directory").arg(workspace::suites().join("cpp"));
    make.arg(format!("BUILD={}", folder.display())).builds().minutes(5).run(log)?;
    Ok(folder.join("greeter"))
}
