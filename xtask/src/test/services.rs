//! The services of `crates/services`, asked by other people's clients: grpcurl by reflection, and gRPC's own health and
//! reflection clients for Python.

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// One run of grpcurl against `thalweg serve`, without any .proto file.
struct Case {
    /// Before the address.
    flags: &'static [&'static str],
    /// Behind it.
    words: &'static str,
    /// 64 and the status code where a call fails, 1 where there is no such symbol.
    exit_code: i32,
    /// What it prints, among other things.
    says: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        flags: &[],
        words: "list",
        exit_code: 0,
        says: &[
            "grpc.health.v1.Health\n",
            "grpc.reflection.v1.ServerReflection\n",
            "grpc.reflection.v1alpha.ServerReflection\n",
            "grpc.testing.BenchmarkService\n",
            "grpc.testing.TestService\n",
        ],
    },
    Case {
        flags: &[],
        words: "list grpc.health.v1.Health",
        exit_code: 0,
        says: &[
            "grpc.health.v1.Health.Check\n",
            "grpc.health.v1.Health.List\n",
            "grpc.health.v1.Health.Watch\n",
        ],
    },
    Case {
        flags: &[],
        words: "describe grpc.testing.TestService",
        exit_code: 0,
        says: &["rpc UnaryCall ( .grpc.testing.SimpleRequest ) returns ( .grpc.testing.SimpleResponse );"],
    },
    Case {
        flags: &[],
        words: "describe grpc.testing.TestService.FullDuplexCall",
        exit_code: 0,
        says: &["( stream .grpc.testing.StreamingOutputCallRequest )"],
    },
    Case {
        flags: &[],
        words: "describe .grpc.testing.EchoStatus",
        exit_code: 0,
        says: &["int32 code = 1;", "string message = 2;"],
    },
    Case {
        flags: &[],
        words: "describe grpc.reflection.v1alpha.ErrorResponse",
        exit_code: 0,
        says: &["int32 error_code = 1;"],
    },
    Case { flags: &[], words: "describe a.B", exit_code: 1, says: &["Symbol not found: a.B"] },
    Case {
        flags: &["-d", r#"{"response_size": 3}"#],
        words: "grpc.testing.TestService/UnaryCall",
        exit_code: 0,
        says: &[r#""body": "AAAA""#],
    },
    Case {
        flags: &["-d", r#"{"response_parameters": [{"size": 1}, {"size": 2}]}"#],
        words: "grpc.testing.TestService/StreamingOutputCall",
        exit_code: 0,
        says: &[r#""body": "AA==""#, r#""body": "AAA=""#],
    },
    Case {
        flags: &[],
        words: "grpc.health.v1.Health/Check",
        exit_code: 0,
        says: &[r#""status": "SERVING""#],
    },
    Case {
        flags: &["-d", r#"{"service": "a.B"}"#],
        words: "grpc.health.v1.Health/Check",
        exit_code: 64 + 5,
        says: &["Code: NotFound", "unknown service a.B"],
    },
    Case {
        flags: &[],
        words: "grpc.health.v1.Health/List",
        exit_code: 0,
        says: &[r#""grpc.testing.TestService": {"#],
    },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let (grpcurl, python) = (tools::GRPCURL.get(log)?, tools::python(log)?);
    let port = free_port()?;
    let serve = Job::new(rust::command(log)?).words(&format!("serve --listen 127.0.0.1:{port}"));
    let server = Server::start(&serve, port, log)?;
    let address = format!("127.0.0.1:{port}");
    let mut failed = 0;
    for case in CASES {
        let job = case.flags.iter().fold(Job::new(&grpcurl).arg("-plaintext"), Job::arg);
        let output = job.arg(&address).words(case.words).seconds(30).output(log)?;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let missing: Vec<_> = case.says.iter().filter(|part| !said.contains(**part)).collect();
        if output.status.code() != Some(case.exit_code) || !missing.is_empty() {
            failed += 1;
            let code = case.exit_code;
            log.line(format_args!(
                "FAIL  {}: {}, not {code}; missing: {missing:?}",
                case.words, output.status
            ))?;
        }
    }
    // It tells the server to stop, and watches that.
    let client = Job::new(python).arg(workspace::suites().join("python/grpcio_services.py"));
    let client = client.arg(&address).arg(server.process_id().to_string());
    let output = client.seconds(60).output(log)?;
    let passed =
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with("ok ")).count();
    let ended = server.stop()?;
    let cases = CASES.len();
    let account = format!("grpcurl: {} of {cases} cases; grpcio: {passed} of {GRPCIO_CASES}", cases - failed);
    let is_well = failed == 0 && passed == GRPCIO_CASES && output.status.success() && ended.success();
    if is_well { Ok(account) } else { Err(Failure::failed(account)) }
}

/// As many as `xtask/suites/python/grpcio_services.py` has.
const GRPCIO_CASES: usize = 7;
