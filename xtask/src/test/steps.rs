//! Which steps there are. `docs/testing.md` has the table that [`markdown`] makes of them.

use std::fmt::Write;

use super::{
    book, call, conformance, connect, costs, dependencies, deploy, dist, examples, grpcio, h2spec, interop,
    layering, metrics, negative, openapi, packages, pages, peers, platforms, plugin, programs, protos,
    rebuild, report, rust, services, surface, tls, web, workflows,
};
use crate::job::{Failure, Log};

/// One check. It writes to its log and gives a short account of what passed.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// In Markdown.
    pub(super) proves: &'static str,
    /// What a machine must have for it, besides cargo.
    pub(super) needs: &'static str,
    pub(super) sequence: Sequence,
    /// The steps that build what this one runs.
    pub(super) after: &'static [&'static str],
    pub(super) run: fn(&Log) -> Result<String, Failure>,
}

/// Steps of one sequence run one after the other, beside those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// What compiles, or takes all processors for long.
    Builds,
    /// What mostly waits: for the network, for servers, for time limits of a suite.
    Suites,
}

use Sequence::{Builds, Suites};

/// Steps without a bounded form: they run with `--long`, and where `--only` names them.
pub(super) const ONLY_LONG: &[&str] = &["platforms"];

/// In the order of each sequence: what is quick and finds most comes first, then what others wait for.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "format",
        proves: "the code is as rustfmt lays it out",
        needs: "rustfmt",
        sequence: Builds,
        after: &[],
        run: rust::format,
    },
    Step {
        name: "layering",
        proves: "no crate and no module imports against the design's arrows, and no files of a crate import each \
                 other in a circle; the sans-I/O crates are built without tokio and sockets and read no clock; tonic's \
                 transport is not in the library's tree; lines have at most 120 columns",
        needs: "",
        sequence: Builds,
        after: &[],
        run: layering::check,
    },
    Step {
        name: "surface",
        proves: "`crates/tonic` has every public module, item, method, field, trait and feature of the tonic in \
                 `Cargo.lock`, but for a list of exceptions with their reasons",
        needs: "",
        sequence: Builds,
        after: &[],
        run: surface::check,
    },
    Step {
        name: "lints",
        proves: "clippy has no warning with the optional features of the libraries, among them that our own code uses \
                 nothing newer than `rust-version`; rustc has none without the features, and rustdoc none",
        needs: "clippy",
        sequence: Builds,
        after: &[],
        run: rust::lints,
    },
    Step {
        name: "release",
        proves: "the release build stands",
        needs: "",
        sequence: Builds,
        after: &[],
        run: rust::release,
    },
    Step {
        name: "tests",
        proves: "unit tests, simulations over seeds, fuzzing, doc tests, with the library's optional features; the \
                 lab's tests draw its report in a browser, those of `crates/load` the page of a run, those of \
                 `crates/compare` that of a comparison, and those of `crates/web` call all four types of methods from \
                 the page of the services; those of the command complete words in bash, fish and zsh",
        needs: "Chromium, fish, zsh",
        sequence: Builds,
        after: &[],
        run: rust::tests,
    },
    Step {
        name: "rebuild",
        proves: "a second build compiles nothing: of the whole workspace with its tests, and of the release build",
        needs: "",
        sequence: Builds,
        after: &[],
        run: rebuild::check,
    },
    Step {
        name: "costs",
        proves: "the main calls cost no more instructions and allocations than `xtask/costs.json` says, on either side",
        needs: "valgrind",
        sequence: Builds,
        after: &[],
        run: costs::check,
    },
    Step {
        name: "api",
        proves: "what is public in the libraries for users is what `api` lists, an item a line: a change of what is \
                 promised stands in a diff",
        needs: "the Rust whose rustdoc wrote the lists: its JSON is another with each release",
        sequence: Builds,
        after: &[],
        run: crate::api::check,
    },
    Step {
        name: "packages",
        proves: "each package for the registry has what is shown of it there, and is built from what it holds alone, \
                 and so are, outside the workspace, on these packages, hello world, the same in tonic's words and the \
                 bookstore",
        needs: "protoc",
        sequence: Builds,
        after: &[],
        run: packages::check,
    },
    Step {
        name: "pages",
        proves: "README and tutorial work as written: each command runs, each file compiles, each program prints what \
                 the page says",
        needs: "a C compiler, git",
        sequence: Builds,
        after: &["packages"],
        run: pages::check,
    },
    Step {
        name: "platforms",
        proves: "with `--long`: on 64-bit ARM the command is built, serves itself and calls itself, and the tests of \
                 the protocol, the codec and the engine pass, on an emulated processor; the libraries are compiled for \
                 musl, Android, macOS and FreeBSD, and those that need no Unix for Windows",
        needs: "root, for a Debian 14 of its own",
        sequence: Builds,
        after: &[],
        run: platforms::check,
    },
    Step {
        name: "dist",
        proves: "the command's bill of materials is one that CycloneDX's own library takes, and each part has its \
                 licence; with `--long` `cargo xtask dist` makes what it says: a small command that asks for no C \
                 library later than 2.17, pages of the manual that mandoc reads, a Debian package; and \
                 `deploy/Dockerfile`, done step by step, makes an image in which a study runs, and which says how to \
                 get what needs sources",
        needs: "Python; with `--long` Debian's mandoc and binutils, and for the image root, debootstrap and 1 GB, else \
                it is left out",
        sequence: Suites,
        after: &[],
        run: dist::check,
    },
    Step {
        name: "report",
        proves: "the main job runs, its results have their schema, its page is self-contained, draws its charts and \
                 fits a desktop and a phone, light and dark",
        needs: "Chromium",
        sequence: Builds,
        after: &[],
        run: report::check,
    },
    Step {
        name: "dependencies",
        proves: "nothing that we build on asks for a newer Rust than our `rust-version`, and `deny.toml` accepts its \
                 licences and sources and finds nothing twice; advisories are checked with `--long` or where \
                 cargo-deny is installed, if their database can be fetched; with `--long` the oldest versions that \
                 our manifests allow are built",
        needs: "",
        sequence: Suites,
        after: &[],
        run: dependencies::check,
    },
    Step {
        name: "book",
        proves: "mdBook makes a book of the guides, and each link in it leads to a page and a place that are there",
        needs: "",
        sequence: Suites,
        after: &[],
        run: book::check,
    },
    Step {
        name: "workflows",
        proves: "actionlint finds nothing in the workflows of the forge",
        needs: "Go",
        sequence: Suites,
        after: &[],
        run: workflows::check,
    },
    Step {
        name: "h2spec",
        proves: "our server keeps to RFC 9113 and RFC 7541 in all 146 cases of h2spec 2.2.1, the strict ones \
                 too, in the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["release"],
        run: h2spec::server,
    },
    Step {
        name: "interop-server",
        proves: "grpc-go's interop client gets on with our server: 14 cases, in the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["release"],
        run: interop::server,
    },
    Step {
        name: "grpcio-server",
        proves: "gRPC's C core as the client: four call types × 10 sizes, from nothing over the edges of frames and \
                 windows to 4 MiB, plain and compressed by gzip and by deflate",
        needs: "Python",
        sequence: Suites,
        after: &["release"],
        run: grpcio::server,
    },
    Step {
        name: "grpcio-client",
        proves: "the same with gRPC's C core as the server",
        needs: "Python",
        sequence: Suites,
        after: &["release"],
        run: grpcio::client,
    },
    Step {
        name: "services",
        proves: "grpcurl lists, describes and calls our server by reflection alone, and gRPC's own health and \
                 reflection clients for Python get on with it, its graceful stop included; our .proto files of the \
                 services declare what gRPC's do",
        needs: "Go, Python",
        sequence: Suites,
        after: &["release"],
        run: services::check,
    },
    Step {
        name: "call",
        proves: "`thalweg call` lists, describes and calls, with all four types of call, `thalweg load` drives, and \
                 `thalweg compare` measures in turns, what others serve: grpc-go's examples with reflection and \
                 without, over TLS too; services in the shape of tonic's examples on tonic, with its health, \
                 reflection and error details, over TLS and with certificates of clients too; gRPC C++ with the older \
                 reflection; and an etcd by its protos",
        needs: "Go, g++, protoc, Debian's etcd",
        sequence: Suites,
        after: &["release"],
        run: call::check,
    },
    Step {
        name: "deploy",
        proves: "an API server takes the manifests of `deploy/kubernetes`, by Kubernetes' own validation and the Pod \
                 security profile `restricted`, and their commands make a load and join it; the driver for Ray does on \
                 a cluster of two nodes, with histograms that are the sum of those of the parts; the pages of the \
                 joined runs have their calls, schedule and p99",
        needs: "Go, Python",
        sequence: Suites,
        after: &["release"],
        run: deploy::check,
    },
    Step {
        name: "metrics",
        proves: "what `thalweg load` tells while it runs is what its result says: to an OpenTelemetry Collector by \
                 `--otlp`, with names, kinds, units and attributes; and to Prometheus, whose own parsers read \
                 `--prometheus` in both formats, and in which the linter of `promtool check metrics` finds nothing",
        needs: "Go",
        sequence: Suites,
        after: &["release"],
        run: metrics::check,
    },
    Step {
        name: "tls",
        proves: "`openssl s_client` and curl get on with our server over TLS 1.2 and 1.3: ALPN, resumption, client \
                 certificates, a call; older versions, renegotiation, compression and every cipher suite but \
                 ECDHE with AES-GCM and ChaCha20-Poly1305 are refused",
        needs: "openssl, curl",
        sequence: Suites,
        after: &["release"],
        run: tls::check,
    },
    Step {
        name: "negative",
        proves: "servers that misbehave (GOAWAY after each call, RST_STREAM in the middle, padding, HTTP/1, garbage, \
                 silence …): calls succeed all the same, or there is one clear line and exit code 1; nothing hangs",
        needs: "Python",
        sequence: Suites,
        after: &["release"],
        run: negative::check,
    },
    Step {
        name: "peers",
        proves: "tonic, gRPC C++ and grpc-go keep the contract of `peers/README.md`: each one's server with our load \
                 generator and the reverse, all call types and variants; Qt GRPC's client calls our server; axum, \
                 grpc-gateway, connect-go and Spring answer curl in JSON over both versions of HTTP, and in gRPC",
        needs: "Go, g++, protoc, a JDK, Maven and curl; for Qt root, debootstrap and 1 GB, else it is left out",
        sequence: Suites,
        after: &["release"],
        run: peers::check,
    },
    Step {
        name: "programs",
        proves: "published programs that stand on tonic run on `thalweg-tonic` with the entry of `tonic` in their \
                 manifests changed and nothing else: `etcd-client` with an etcd, `opentelemetry-otlp` and \
                 `qdrant-client` with servers on tonic and on ours; tonic's own health, reflection and gRPC-Web \
                 crates run as they are",
        needs: "protoc, Debian's etcd",
        sequence: Suites,
        after: &["peers"],
        run: programs::check,
    },
    Step {
        name: "interop-client",
        proves: "our interop client gets on with grpc-go's server: 14 cases, in the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["release", "tests"],
        run: interop::client,
    },
    Step {
        name: "examples",
        proves: "each example runs to its end, and prints what it says that it prints; hello world, the one for \
                 Prometheus and the chat have tests of their own",
        needs: "",
        sequence: Suites,
        after: &["tests"],
        run: examples::check,
    },
    Step {
        name: "web",
        proves: "the commands of the bookstore's README print what it says, by grpcurl and curl, its pages by both \
                 versions of HTTP; `@connectrpc/connect-web` and Google's `grpc-web` call the bookstore from a page in \
                 Chromium: Connect by POST and GET, JSON and binary, gRPC-Web, streams, errors, deadlines",
        needs: "Go, curl, Node, Chromium",
        sequence: Suites,
        after: &["tests"],
        run: web::check,
    },
    Step {
        name: "conformance",
        proves: "our Protobuf engine passes the official conformance suite 36.2, required and recommended \
                 cases: binary, JSON and text, proto2, proto3, edition 2023. Nothing is expected to fail",
        needs: "Python, a C compiler where glibc is older than 2.38",
        sequence: Suites,
        after: &["tests"],
        run: conformance::check,
    },
    Step {
        name: "openapi",
        proves: "openapi-spec-validator accepts the documents of OpenAPI 3.1 that are made of eight `.proto` files, \
                 with names of JSON and of the schema, and finds what is broken in them by hand",
        needs: "Python",
        sequence: Suites,
        after: &["tests"],
        run: openapi::check,
    },
    Step {
        name: "protos",
        proves: "our `.proto` front end says what protoc 36.2 does of a corpus of small files: equal descriptors with \
                 source info for those that it accepts, the same line and column for those that it refuses; with \
                 `--long` of all trees of [codegen.md](codegen.md#as-protoc-reads-them)",
        needs: "Python; with `--long` Go and Node",
        sequence: Suites,
        after: &["tests"],
        run: protos::check,
    },
    Step {
        name: "plugin",
        proves: "protoc 36.2 and buf 1.75.0 generate by `protoc-gen-thalweg`, byte for byte, the files that \
                 `thalweg-build` makes, which the tests of `examples` compile and call, and report its errors",
        needs: "Python, Node",
        sequence: Suites,
        after: &["tests"],
        run: plugin::check,
    },
    Step {
        name: "connect",
        proves: "our server and our client pass Connect's conformance suite 1.0.7 by gRPC, gRPC-Web and Connect, over \
                 HTTP/1.1 and HTTP/2, in the clear and over TLS, with client certificates too, with each compression \
                 but Snappy, which isn't there. Nothing is expected to fail",
        needs: "Go",
        sequence: Suites,
        after: &["tests"],
        run: connect::check,
    },
    Step {
        name: "h2specd",
        proves: "the client half of our HTTP/2 core keeps to them in all 57 cases that h2spec has for clients",
        needs: "Go",
        sequence: Suites,
        after: &["tests"],
        run: h2spec::client,
    },
];

/// The table of `docs/testing.md`.
pub(super) fn markdown() -> String {
    let mut table = String::from("| step | what it proves | needs |\n| --- | --- | --- |\n");
    for Step { name, proves, needs, .. } in STEPS {
        let needs = if needs.is_empty() { String::new() } else { format!("{needs} ") };
        let _ = writeln!(table, "| `{name}` | {proves} | {needs}|");
    }
    table
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{STEPS, markdown};
    use crate::workspace;

    #[test]
    fn the_page_has_the_table() {
        let page = fs::read_to_string(workspace::root().join("docs/testing.md")).expect("the page");
        assert!(
            page.contains(&markdown()),
            "docs/testing.md has another table of steps: put there what `cargo xtask test --list --markdown` prints"
        );
    }

    #[test]
    fn steps_wait_for_steps_that_there_are() {
        for step in STEPS {
            for name in step.after {
                assert!(STEPS.iter().any(|other| other.name == *name), "{} waits for {name}", step.name);
            }
        }
    }
}
