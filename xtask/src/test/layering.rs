//! No crate and no module imports against the arrows of ARCHITECTURE.md.
//!
//! Both tables below say what is allowed or forbidden; what checks them knows no names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::circles::Crate;
use super::tokens::{self, Token};
use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::metadata::{self, Metadata};
use crate::{files, workspace};

/// Each crate of the workspace, what it may import of the others in its code, and what in its build script and its
/// tests besides. `thalweg-sim` is for tests alone.
///
/// `cli -> lab, compare -> load -> thalweg -> engine -> http2`; those that measure import `measure`;
/// `tonic -> engine`; `thalweg -> web -> engine`; `web -> protobuf`; `build` and `link` depend on none of them.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    (
        "thalweg-cli",
        &[
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
        &["thalweg-sim", "thalweg-build"],
    ),
    // A program that the command drives as a peer: the codecs that are compared are in its tree, and in no other.
    ("thalweg-codec", &["thalweg-messages", "thalweg-protobuf"], &[]),
    // Messages. Those who read their own have schemas, too.
    ("thalweg-messages", &["thalweg-protobuf"], &[]),
    // Studies: it makes no call itself.
    (
        "thalweg-lab",
        &["thalweg-load", "thalweg-measure", "thalweg-link", "thalweg-messages", "thalweg-protobuf"],
        &[],
    ),
    // Figures, statistics, processes and the frame of a page: it makes no call.
    ("thalweg-measure", &["thalweg-protobuf"], &[]),
    // Loads beside each other. Its tests read studies, which the command reads for it.
    ("thalweg-compare", &["thalweg-load", "thalweg-measure"], &["thalweg-lab"]),
    // Load on any method of any server, and the services that the lab calls: it knows no study.
    // `thalweg-engine` for requests as they are: what is not gRPC.
    (
        "thalweg-load",
        &[
            "thalweg-dynamic",
            "thalweg-measure",
            "thalweg-messages",
            "thalweg",
            "thalweg-engine",
            "thalweg-protobuf",
        ],
        &["thalweg-build"],
    ),
    // Messages and captured calls, explained: it makes no call.
    ("thalweg-inspect", &["thalweg-http2", "thalweg-protobuf"], &[]),
    // Services that are known at run time only.
    ("thalweg-dynamic", &["thalweg", "thalweg-protobuf", "thalweg-services"], &[]),
    ("thalweg-services", &["thalweg"], &["thalweg-build"]),
    ("thalweg-tonic", &["thalweg-engine"], &["thalweg-sim", "thalweg-build"]),
    // Tests with generated code, which names that crate.
    ("thalweg-tonic-tests", &["thalweg-tonic"], &["thalweg-protobuf"]),
    // The same programs with both API layers.
    ("thalweg-usage", &[], &["thalweg", "thalweg-tonic", "thalweg-build", "thalweg-protobuf"]),
    // The suite of Connect's runs against an example of the library's, which compiles the suite's own .proto files.
    ("thalweg", &["thalweg-engine", "thalweg-web"], &["thalweg-sim", "thalweg-link", "thalweg-protobuf"]),
    ("thalweg-web", &["thalweg-engine", "thalweg-protobuf"], &[]),
    ("thalweg-engine", &["thalweg-http2"], &["thalweg-sim", "thalweg-link"]),
    // A network for any protocol: it knows nothing of ours.
    ("thalweg-link", &[], &[]),
    ("thalweg-http2", &[], &["thalweg-sim"]),
    ("thalweg-protobuf", &[], &[]),
    // Its tests compile what it generates, which needs the library.
    ("thalweg-build", &["thalweg-protobuf"], &["thalweg"]),
    ("thalweg-sim", &["thalweg-inspect", "thalweg", "thalweg-http2", "thalweg-protobuf", "thalweg-web"], &[]),
    ("thalweg-examples", &["thalweg"], &["thalweg-services", "thalweg-build"]),
    ("thalweg-bookstore", &[], &["thalweg", "thalweg-services", "thalweg-build"]),
    ("thalweg-chat", &[], &["thalweg", "thalweg-services", "thalweg-build", "thalweg-link"]),
    ("xtask", &[], &[]),
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

/// Folders whose code reads no clock and opens no socket, comments, strings and tests aside, and why.
const PURE: &[(&str, &str)] = &[
    ("crates/http2/src", "http2 is sans-I/O: the time is an argument"),
    ("crates/protobuf/src", "protobuf is sans-I/O: the time is an argument"),
    ("crates/engine/src/grpc", "grpc/ is pure: bytes in, bytes out"),
    ("crates/web/src/connect", "connect/ is pure: bytes in, bytes out"),
    ("crates/web/src/grpc_web", "grpc_web/ is pure: bytes in, bytes out"),
    ("crates/web/src/transcoding", "transcoding/ is pure: bytes in, bytes out"),
    ("crates/web/src/openapi", "openapi/ is pure: a document is a function of a schema"),
    ("crates/web/src/page", "page/ is pure: the page is a function of a schema"),
];

const CLOCKS_AND_SOCKETS: &[&str] =
    &["tokio", "std::net", "std::os", "std::thread", "std::fs", "Instant::now", "SystemTime::now"];

const ENGINE: &str = "crates/engine/src";

/// Modules of the engine, what they must not import, and why.
const ARROWS: &[(&str, &[&str], &str)] = &[
    ("grpc", &["connection", "lanes", "calls", "server", "net"], "grpc/ is pure"),
    ("net", &["connection", "lanes", "calls", "server"], "net/ only knows sockets"),
    ("connection", &["lanes", "calls", "server"], "both sides stand above it"),
    ("lanes", &["calls", "channel", "server"], "calls go by lanes, and not the other way"),
    ("calls", &["server"], "the two sides know nothing of each other"),
    ("server", &["lanes", "calls", "channel"], "the two sides know nothing of each other"),
];

pub(super) fn check() -> Result<String> {
    let metadata = Metadata::load()?;
    let files = sources()?;
    let mut broken = Vec::new();
    broken.extend(broken_layers(&metadata));
    broken.extend(broken_trees()?);
    broken.extend(files.iter().flat_map(|(path, text)| broken_purity(path, text)));
    broken.extend(broken_arrows(&Crate::read(Path::new(ENGINE), &files)));
    broken.extend(broken_files(&files));
    for line in &broken {
        log::line(line)?;
    }
    match broken.len() {
        0 => Ok(format!("{} crates, {} files", metadata.members.len(), files.len())),
        count => Err(failed!("{count} places go against ARCHITECTURE.md's rules")),
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
            broken.extend(broken_circles(root, &Crate::read(root, files)));
        }
    }
    broken
}

/// Circles that are not undone yet: by methods of a type whose `impl` blocks lie in several files, or of a whole crate.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[
    ("crates/http2/src", &["Connection"]),
    ("crates/link/src", &["LinkThread"]),
    ("crates/protobuf/src", &["Builder", "Printer"]),
    ("peers/axum/src", &["*"]),
    ("peers/tonic/src", &["*"]),
];

fn broken_circles(root: &Path, files: &Crate) -> Vec<String> {
    let root = root.display().to_string();
    let known = KNOWN_CIRCLES.iter().find(|(name, _)| *name == root).map_or(&[][..], |(_, known)| known);
    let mut broken = Vec::new();
    if known != ["*"] {
        broken.extend(
            files
                .circles(known)
                .into_iter()
                .map(|lines| format!("a circle of files in {root}:\n    {}", lines.join("\n    "))),
        );
    }
    for known in known {
        let is_there = files
            .circles(&[])
            .iter()
            .flatten()
            .any(|line| *known == "*" || line.contains(&format!("{known}::")));
        if !is_there {
            broken.push(format!(
                "{root}: the circle of {known} is undone: take it out of KNOWN_CIRCLES in {}",
                file!()
            ));
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
        let Some((_, normal, beside)) = LAYERS.iter().find(|(name, ..)| *name == package.name) else {
            broken.push(format!("{}: this crate has no layer yet; give it one in {}", package.name, file!()));
            continue;
        };
        for (kind, dependency) in &package.dependencies {
            let name = dependency.as_str();
            let allowed =
                normal.contains(&name) || (*kind != metadata::Kind::Normal && beside.contains(&name));
            if members.contains(name) && !allowed && name != package.name {
                broken.push(format!("{} must not depend on {name} ({kind:?})", package.name));
            }
        }
    }
    broken
}

/// Each crate is looked at alone: beside others, its dependencies have features that those ask for.
fn broken_trees() -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for (name, forbidden, why) in FORBIDDEN_IN_TREE {
        let tree = Job::cargo(&format!("tree --package {name} --edges normal --prefix none --format {{p}}"))
            .minutes(5);
        let tree = tree.quiet_text()?;
        let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        broken.extend(forbidden.iter().filter(|found| names.contains(*found)).map(|found| {
            format!("{name} must not be built with {found}: {why} (`cargo tree --package {name} --invert {found}`)")
        }));
    }
    Ok(broken)
}

fn broken_purity(path: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, why) in PURE.iter().filter(|(folder, _)| path.starts_with(folder) && !is_test(path)) {
        let tokens = tokens::read(text).kept;
        for forbidden in CLOCKS_AND_SOCKETS {
            let wanted: Vec<&str> = forbidden.split("::").flat_map(|word| ["::", word]).skip(1).collect();
            let is_it =
                |window: &&[Token]| window.iter().map(|token| token.text.as_str()).eq(wanted.iter().copied());
            broken.extend(
                tokens
                    .windows(wanted.len())
                    .filter(is_it)
                    .map(|window| format!("{}:{}: {forbidden}: {}", path.display(), window[0].line, why)),
            );
        }
    }
    broken
}

/// Of the engine, whatever a name is re-exported through.
fn broken_arrows(engine: &Crate) -> Vec<String> {
    let top = |path: &Path| {
        path.strip_prefix(ENGINE).ok().and_then(|path| tokens::module_of(path).first().cloned())
    };
    let mut broken = Vec::new();
    for (from, to, names) in engine.imports_by_path() {
        let (Some(module), Some(imported)) = (top(from), top(to)) else { continue };
        let rules =
            ARROWS.iter().filter(|(name, forbidden, _)| *name == module && forbidden.contains(&&*imported));
        broken.extend(rules.map(|(.., why)| {
            format!("{}: {module} must not import {imported} ({names}): {why}", from.display())
        }));
    }
    broken
}

/// All Rust files of ours and their texts, by their path from the root. What is under `golden` is generated.
fn sources() -> Result<Vec<(PathBuf, String)>> {
    let root = workspace::root();
    let mut found = Vec::new();
    for folder in ["crates", "examples", "peers", "xtask"] {
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
    use crate::test::circles::Crate;

    /// `text` in a file of the engine or another crate, beside the engine's modules.
    fn check(path: &str, text: &str, count: usize) {
        let sources = [
            (path, text),
            ("crates/engine/src/lib.rs", "mod lanes; pub use lanes::Kept;"),
            ("crates/engine/src/lanes/kept.rs", "pub struct Kept;"),
            ("crates/engine/src/lanes.rs", "mod kept; pub use kept::Kept; pub struct Lane; mod lane;"),
            ("crates/engine/src/server.rs", "pub struct Routes; pub fn serve() {}"),
            ("crates/engine/src/grpc.rs", "pub struct Status;"),
            ("crates/engine/src/connection.rs", "pub struct Driver; mod driver;"),
        ];
        let sources: Vec<_> =
            sources.iter().map(|(path, text)| (Path::new(path).to_owned(), (*text).to_owned())).collect();
        let mut broken = broken_purity(Path::new(path), text);
        broken.extend(broken_arrows(&Crate::read(Path::new("crates/engine/src"), &sources)));
        assert_eq!(broken.len(), count, "{path}: {broken:#?}");
    }

    #[test]
    fn arrows_that_go_up_are_found() {
        check("crates/engine/src/server/dispatch.rs", "use crate::lanes::Lane;", 1);
        check("crates/engine/src/server/dispatch.rs", "use crate::Kept;", 1);
        check("crates/engine/src/server/dispatch.rs", "use crate::{grpc::Status,\n lanes::{Lane}};", 1);
        check("crates/engine/src/connection/driver.rs", "use super::super::server::Routes;", 1);
        check("crates/engine/src/lanes/lane.rs", "fn f() {\n crate::server::serve() }", 1);
        check("crates/engine/src/grpc/timeout.rs", "use std::time::Instant;\nlet x = Instant::now();", 1);
        check("crates/http2/src/lib.rs", "use tokio::time;", 1);
    }

    #[test]
    fn what_is_allowed_is_left_alone() {
        check(
            "crates/engine/src/server/dispatch.rs",
            "use crate::connection::Driver; use super::lanes_of;",
            0,
        );
        check("crates/engine/src/server/dispatch.rs", "// crate::lanes\nlet x = \"crate::lanes\";", 0);
        check("crates/engine/src/server/dispatch.rs", "mod tests {\n use crate::lanes::Lane; }", 0);
        check("crates/http2/src/lib.rs", "/// Not tokio's.\nfn f(now: Instant) {}", 0);
        check("crates/engine/src/net/tcp.rs", "use tokio::net::TcpStream;", 0);
    }
}
