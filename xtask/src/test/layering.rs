//! No crate and no module imports against the arrows of ARCHITECTURE.md.
//!
//! Both tables below say what is allowed or forbidden; what checks them knows no names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::circles::Crate;
use super::modules::{self, Source};
use crate::job::{Failure, Job, Log};
use crate::metadata::{self, Metadata};
use crate::{files, workspace};

/// What one crate of the workspace may import of the others.
struct Layer {
    name: &'static str,
    /// In its code.
    normal: &'static [&'static str],
    /// In its build script and its tests, besides. `thalweg-sim` is for tests alone.
    beside: &'static [&'static str],
}

/// `cli -> compare -> lab -> drive -> thalweg -> engine -> http2`; `compare -> load -> thalweg`; `lab`, `drive`, `load`
/// and `compare` stand on `measure`; `tonic -> engine`; `web -> protobuf`,
/// `thalweg -> web -> engine`; `build` and `link` depend on none of them; cli and lab use `link`, and so do the
/// library's tests.
const LAYERS: &[Layer] = &[
    Layer {
        name: "thalweg-cli",
        normal: &[
            "thalweg-compare",
            "thalweg-dynamic",
            "thalweg-inspect",
            "thalweg-lab",
            "thalweg-load",
            "thalweg-measure",
            "thalweg-services",
            "thalweg-link",
            "thalweg-messages",
            "thalweg",
            "thalweg-http2",
            "thalweg-protobuf",
        ],
        beside: &["thalweg-sim", "thalweg-build"],
    },
    // A program that the command drives as a peer: the codecs that are compared are in its tree, and in no other.
    Layer { name: "thalweg-codec", normal: &["thalweg-messages", "thalweg-protobuf"], beside: &[] },
    // Messages. Those who read their own have schemas, too.
    Layer { name: "thalweg-messages", normal: &["thalweg-protobuf"], beside: &[] },
    // Studies: it makes no call itself.
    Layer {
        name: "thalweg-lab",
        normal: &["thalweg-load", "thalweg-measure", "thalweg-link", "thalweg-messages", "thalweg-protobuf"],
        beside: &[],
    },
    // Figures, statistics, processes and the frame of a page: it makes no call.
    Layer { name: "thalweg-measure", normal: &["thalweg-protobuf"], beside: &[] },
    // Loads beside each other.
    Layer {
        name: "thalweg-compare",
        normal: &["thalweg-lab", "thalweg-load", "thalweg-measure"],
        beside: &[],
    },
    // Load on any method of any server, and the services that the lab calls: it knows no study.
    Layer {
        name: "thalweg-load",
        // `thalweg-engine` for requests as they are: what is not gRPC.
        normal: &["thalweg-measure", "thalweg-messages", "thalweg", "thalweg-engine", "thalweg-protobuf"],
        beside: &["thalweg-build"],
    },
    // Messages and captured calls, explained: it makes no call.
    Layer { name: "thalweg-inspect", normal: &["thalweg-http2", "thalweg-protobuf"], beside: &[] },
    // Services that are known at run time only.
    Layer {
        name: "thalweg-dynamic",
        normal: &["thalweg", "thalweg-protobuf", "thalweg-services"],
        beside: &[],
    },
    Layer { name: "thalweg-services", normal: &["thalweg"], beside: &["thalweg-build"] },
    Layer { name: "thalweg-tonic", normal: &["thalweg-engine"], beside: &["thalweg-sim", "thalweg-build"] },
    // Tests with generated code, which names that crate.
    Layer { name: "thalweg-tonic-tests", normal: &["thalweg-tonic"], beside: &["thalweg-protobuf"] },
    // The same programs with both API layers.
    Layer {
        name: "thalweg-usage",
        normal: &[],
        beside: &["thalweg", "thalweg-tonic", "thalweg-build", "thalweg-protobuf"],
    },
    // The suite of Connect's runs against an example of the library's, which compiles the suite's own .proto files.
    Layer {
        name: "thalweg",
        normal: &["thalweg-engine", "thalweg-web"],
        beside: &["thalweg-sim", "thalweg-link", "thalweg-protobuf"],
    },
    Layer { name: "thalweg-web", normal: &["thalweg-engine", "thalweg-protobuf"], beside: &[] },
    Layer { name: "thalweg-engine", normal: &["thalweg-http2"], beside: &["thalweg-sim", "thalweg-link"] },
    // A network for any protocol: it knows nothing of ours.
    Layer { name: "thalweg-link", normal: &[], beside: &[] },
    Layer { name: "thalweg-http2", normal: &[], beside: &["thalweg-sim"] },
    Layer { name: "thalweg-protobuf", normal: &[], beside: &[] },
    // Its tests compile what it generates, which needs the library.
    Layer { name: "thalweg-build", normal: &["thalweg-protobuf"], beside: &["thalweg"] },
    Layer {
        name: "thalweg-sim",
        normal: &["thalweg-inspect", "thalweg", "thalweg-http2", "thalweg-protobuf", "thalweg-web"],
        beside: &[],
    },
    Layer { name: "thalweg-examples", normal: &["thalweg"], beside: &["thalweg-services", "thalweg-build"] },
    Layer {
        name: "thalweg-bookstore",
        normal: &[],
        beside: &["thalweg", "thalweg-services", "thalweg-build"],
    },
    Layer {
        name: "thalweg-chat",
        normal: &[],
        beside: &["thalweg", "thalweg-services", "thalweg-build", "thalweg-link"],
    },
    Layer { name: "xtask", normal: &[], beside: &[] },
];

/// What must not be in the whole tree that a crate is built with, however it got there.
const FORBIDDEN_IN_TREE: &[(&str, &[&str], &str)] = &[
    ("thalweg-http2", ASYNC_AND_SOCKETS, "it is sans-I/O"),
    ("thalweg-protobuf", ASYNC_AND_SOCKETS, "it is sans-I/O"),
    ("thalweg-link", &["tokio"], "its thread is woken to the microsecond, which a runtime's timers are not"),
    ("thalweg-engine", &["tonic", "prost", "buffa"], "it knows no message type, and no type of a face"),
    ("thalweg-engine", TRANSPORTS, "it is one itself"),
    (
        "thalweg-tonic --no-default-features --features codegen,router,transport,tls-ring",
        &["aws-lc-rs", "aws-lc-sys"],
        "ring is in their place: a program has one provider of cryptography",
    ),
    (
        "thalweg-tonic --no-default-features --features codegen",
        &["thalweg-engine", "hyper", "socket2"],
        "without a transport it is tonic's types, for any target",
    ),
    ("thalweg-tonic", &["prost", "hyper-timeout"], "it knows no message type, and is tonic's channel itself"),
    ("thalweg-web", &["tonic", "prost", "buffa"], "its messages are wire bytes, and it knows no face"),
    ("thalweg-services", TRANSPORTS, "tonic lends its vocabulary, not its transport"),
    ("thalweg", TRANSPORTS, "tonic lends its vocabulary, not its transport"),
    (
        "thalweg-lab",
        // buffa is an optional feature of the library, which the examples switch on.
        // What its clients of JSON and MessagePack have, serde_json and rmp-serde, is a codec that is compared, too.
        &["prost-reflect", "sonic-rs", "pbjson", "zstd"],
        "the codecs that are compared are thalweg-codec's",
    ),
    ("thalweg-cli", &["sonic-rs", "pbjson"], "the codecs that are compared are a program of their own"),
];

const TRANSPORTS: &[&str] = &["h2", "hyper", "tower", "axum"];

const ASYNC_AND_SOCKETS: &[&str] = &["tokio", "mio", "socket2", "async-std", "smol", "polling"];

/// Text that must not stand in the code of a crate or module, comments, strings and tests aside.
struct Purity {
    folder: &'static str,
    forbidden: &'static [&'static str],
    why: &'static str,
}

const PURITY: &[Purity] = &[
    Purity {
        folder: "crates/http2/src",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "http2 is sans-I/O: the time is an argument",
    },
    Purity {
        folder: "crates/protobuf/src",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "protobuf is sans-I/O: the time is an argument",
    },
    Purity {
        folder: "crates/engine/src/grpc",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "grpc/ is pure: bytes in, bytes out",
    },
    Purity {
        folder: "crates/web/src/connect",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "connect/ is pure: bytes in, bytes out",
    },
    Purity {
        folder: "crates/web/src/grpc_web",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "grpc_web/ is pure: bytes in, bytes out",
    },
    Purity {
        folder: "crates/web/src/transcoding",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "transcoding/ is pure: bytes in, bytes out",
    },
    Purity {
        folder: "crates/web/src/openapi",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "openapi/ is pure: a document is a function of a schema",
    },
    Purity {
        folder: "crates/web/src/page",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "page/ is pure: the page is a function of a schema",
    },
];

const CLOCKS_AND_SOCKETS: &[&str] =
    &["tokio", "std::net", "std::os", "std::thread", "std::fs", "Instant::now", "SystemTime::now"];

/// `module` of the engine must not import any of `forbidden`.
struct Arrow {
    module: &'static str,
    forbidden: &'static [&'static str],
    why: &'static str,
}

const ARROWS: &[Arrow] = &[
    Arrow {
        module: "grpc",
        forbidden: &["connection", "lanes", "calls", "server", "net"],
        why: "grpc/ is pure",
    },
    Arrow {
        module: "net",
        forbidden: &["connection", "lanes", "calls", "server"],
        why: "net/ only knows sockets",
    },
    Arrow {
        module: "connection",
        forbidden: &["lanes", "calls", "server"],
        why: "both sides stand above it",
    },
    Arrow {
        module: "lanes",
        forbidden: &["calls", "channel", "server"],
        why: "calls go by lanes, and not the other way",
    },
    Arrow { module: "calls", forbidden: &["server"], why: "the two sides know nothing of each other" },
    Arrow {
        module: "server",
        forbidden: &["lanes", "calls", "channel"],
        why: "the two sides know nothing of each other",
    },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let metadata = Metadata::load(log)?;
    let files = sources()?;
    let sources: Vec<(&Path, Source)> = files
        .iter()
        .filter(|(path, _)| path.starts_with("crates") && !is_test(path))
        .map(|(path, text)| (path.as_path(), Source::read(text)))
        .collect();
    let mut broken = Vec::new();
    broken.extend(broken_layers(&metadata));
    broken.extend(broken_trees(log)?);
    broken.extend(sources.iter().flat_map(|(path, source)| broken_purity(path, source)));
    broken.extend(sources.iter().flat_map(|(path, source)| broken_arrows(path, source)));
    broken.extend(broken_files(&files));
    for line in &broken {
        log.line(line)?;
    }
    match broken.len() {
        0 => Ok(format!("{} crates, {} files", metadata.members.len(), files.len())),
        count => Err(Failure::failed(format!("{count} places go against ARCHITECTURE.md's rules"))),
    }
}

/// The widest line that is taken, in columns; rustfmt leaves texts and comments alone.
const WIDTH: usize = 120;

/// What is wrong with files whatever their crate: circles, wide lines, `x/mod.rs` in place of `x.rs`.
fn broken_files(files: &[(PathBuf, String)]) -> Vec<String> {
    let mut broken = Vec::new();
    for (path, text) in files {
        let wide = text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH);
        broken.extend(
            wide.map(|(index, _)| format!("{}:{}: more than {WIDTH} columns", path.display(), index + 1)),
        );
        if path.file_name().is_some_and(|name| name == "mod.rs") {
            let folder = path.parent().unwrap_or(path);
            broken.push(format!("{}: move it to {}.rs", path.display(), folder.display()));
        }
        if path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs") && !is_test(path) {
            let root = path.parent().unwrap_or(path);
            broken.extend(Crate::read(root, files).circles().into_iter().map(|lines| {
                format!("a circle of files in {}:\n    {}", root.display(), lines.join("\n    "))
            }));
        }
    }
    broken
}

/// A file for tests alone.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

fn broken_layers(metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> = metadata.member_packages().map(|package| package.name.as_str()).collect();
    let mut broken = Vec::new();
    for package in metadata.member_packages() {
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == package.name) else {
            broken.push(format!("{}: this crate has no layer yet; give it one in {}", package.name, file!()));
            continue;
        };
        for (kind, dependency) in &package.dependencies {
            let name = dependency.as_str();
            let allowed = layer.normal.contains(&name)
                || (*kind != metadata::Kind::Normal && layer.beside.contains(&name));
            if members.contains(name) && !allowed && name != package.name {
                broken.push(format!("{} must not depend on {name} ({kind:?})", package.name));
            }
        }
    }
    broken
}

/// Each crate is looked at alone: beside others, its dependencies have features that those ask for.
fn broken_trees(log: &Log) -> Result<Vec<String>, Failure> {
    let mut broken = Vec::new();
    for (name, forbidden, why) in FORBIDDEN_IN_TREE {
        let tree = Job::cargo(&format!("tree --package {name} --edges normal --prefix none --format {{p}}"))
            .minutes(5);
        let tree = tree.quiet_text(log)?;
        let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        broken.extend(forbidden.iter().filter(|found| names.contains(*found)).map(|found| {
            format!("{name} must not be built with {found}: {why} (`cargo tree --package {name} --invert {found}`)")
        }));
    }
    Ok(broken)
}

fn broken_purity(path: &Path, source: &Source) -> Vec<String> {
    let rules = PURITY.iter().filter(|rule| path.starts_with(rule.folder));
    let broken = |rule: &Purity| {
        let found = source.mentions(rule.forbidden);
        let lines =
            found.into_iter().map(|(line, text)| format!("{}:{line}: {text}: {}", path.display(), rule.why));
        lines.collect::<Vec<_>>()
    };
    rules.flat_map(broken).collect()
}

fn broken_arrows(path: &Path, source: &Source) -> Vec<String> {
    let Ok(path_in_crate) = path.strip_prefix("crates/engine/src") else { return Vec::new() };
    let module = modules::path_of(path_in_crate);
    let rules = ARROWS.iter().filter(|arrow| module.first().is_some_and(|first| first == arrow.module));
    let imports = source.imports(&module);
    let broken = |arrow: &Arrow| {
        let found = imports.iter().filter(|(_, import)| arrow.forbidden.contains(&import.as_str()));
        let describe = |(line, import): &(usize, String)| {
            format!("{}:{line}: {} must not import {import}: {}", path.display(), arrow.module, arrow.why)
        };
        found.map(describe).collect::<Vec<_>>()
    };
    rules.flat_map(broken).collect()
}

/// All Rust files of ours and their texts, by their path from the root. What is under `golden` is generated.
fn sources() -> Result<Vec<(PathBuf, String)>, Failure> {
    let root = workspace::root();
    let mut found = Vec::new();
    for folder in ["crates", "examples", "xtask"] {
        let enters = |folder: &Path| !folder.ends_with("golden") && !folder.ends_with("target");
        for path in files::below_if(&root.join(folder), enters)? {
            if files::has_extension(&path, "rs") {
                let text = fs::read_to_string(&path)?;
                found.push((path.strip_prefix(root).unwrap_or(&path).to_owned(), text));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{broken_arrows, broken_purity};
    use crate::test::modules::Source;

    fn check(path: &str, text: &str, broken_lines: &[usize]) {
        let source = Source::read(text);
        let mut broken = broken_purity(Path::new(path), &source);
        broken.extend(broken_arrows(Path::new(path), &source));
        let lines: Vec<usize> =
            broken.iter().map(|line| line.split(':').nth(1).unwrap().parse().unwrap()).collect();
        assert_eq!(lines, broken_lines, "{path}: {broken:#?}");
    }

    #[test]
    fn arrows_that_go_up_are_found() {
        check("crates/engine/src/server/dispatch.rs", "use crate::lanes::Lane;", &[1]);
        check("crates/engine/src/server.rs", "use crate::{grpc::Status,\n lanes::{Lane}};", &[2]);
        check("crates/engine/src/connection/driver.rs", "use super::super::server::Routes;", &[1]);
        check("crates/engine/src/lanes/lane.rs", "fn f() {\n crate::server::serve() }", &[2]);
        check("crates/engine/src/grpc/timeout.rs", "use std::time::Instant;\nlet x = Instant::now();", &[2]);
        check("crates/http2/src/lib.rs", "use tokio::time;", &[1]);
    }

    #[test]
    fn what_is_allowed_is_left_alone() {
        check(
            "crates/engine/src/server/dispatch.rs",
            "use crate::connection::Driver; use super::lanes_of;",
            &[],
        );
        check("crates/engine/src/server/dispatch.rs", "// crate::lanes\nlet x = \"crate::lanes\";", &[]);
        check("crates/engine/src/server/dispatch.rs", "mod tests {\n use crate::lanes::Lane; }", &[]);
        check("crates/http2/src/lib.rs", "/// Not tokio's.\nfn f(now: Instant) {}", &[]);
        check("crates/engine/src/net/tcp.rs", "use tokio::net::TcpStream;", &[]);
    }
}
