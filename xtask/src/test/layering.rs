//! No crate and no module imports against the arrows of ARCHITECTURE.md.
//!
//! Both tables below say what is allowed or forbidden; what checks them knows no names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::job::{Failure, Log};
use crate::metadata::{Kind, Metadata};
use crate::test::modules::{self, Source};
use crate::workspace;

/// What one crate of the workspace may import of the others.
struct Layer {
    name: &'static str,
    /// In its code.
    normal: &'static [&'static str],
    /// In its build script and its tests, besides. `thalweg-sim` is for tests alone.
    beside: &'static [&'static str],
}

/// `cli -> codec -> lab -> thalweg -> {http2, protobuf}`; `tonic -> thalweg`; `build` and `link` depend on none of
/// them; cli and lab use `link`, and so do the library's tests.
const LAYERS: &[Layer] = &[
    Layer {
        name: "thalweg-cli",
        normal: &[
            "thalweg-codec",
            "thalweg-lab",
            "thalweg-link",
            "thalweg",
            "thalweg-http2",
            "thalweg-protobuf",
        ],
        beside: &["thalweg-sim", "thalweg-build"],
    },
    // The codecs that are compared are in its tree and the command's, and in no other.
    Layer { name: "thalweg-codec", normal: &["thalweg-lab", "thalweg-protobuf"], beside: &["thalweg-build"] },
    Layer {
        name: "thalweg-lab",
        normal: &["thalweg-link", "thalweg", "thalweg-http2", "thalweg-protobuf"],
        beside: &["thalweg-sim", "thalweg-build"],
    },
    Layer { name: "thalweg-tonic", normal: &["thalweg"], beside: &["thalweg-sim", "thalweg-build"] },
    Layer {
        name: "thalweg",
        normal: &["thalweg-http2", "thalweg-protobuf"],
        beside: &["thalweg-sim", "thalweg-link"],
    },
    // A network for any protocol: it knows nothing of ours.
    Layer { name: "thalweg-link", normal: &[], beside: &[] },
    Layer { name: "thalweg-http2", normal: &[], beside: &["thalweg-sim"] },
    Layer { name: "thalweg-protobuf", normal: &[], beside: &[] },
    // Its tests compile what it generates, which needs the library.
    Layer { name: "thalweg-build", normal: &[], beside: &["thalweg"] },
    Layer { name: "thalweg-sim", normal: &["thalweg", "thalweg-http2", "thalweg-protobuf"], beside: &[] },
    Layer { name: "thalweg-examples", normal: &["thalweg"], beside: &["thalweg-build"] },
    Layer { name: "xtask", normal: &[], beside: &[] },
];

/// What must not be in the whole tree that a crate is built with, however it got there.
const FORBIDDEN_IN_TREE: &[(&str, &[&str], &str)] = &[
    ("thalweg-http2", ASYNC_AND_SOCKETS, "it is sans-I/O"),
    ("thalweg-protobuf", ASYNC_AND_SOCKETS, "it is sans-I/O"),
    ("thalweg-link", &["tokio"], "its thread is woken to the microsecond, which a runtime's timers are not"),
    ("thalweg", &["h2", "hyper", "tower", "axum"], "tonic lends its vocabulary, not its transport"),
    (
        "thalweg-lab",
        &["sonic-rs", "pbjson", "rmp-serde", "zstd"],
        "the codecs that are compared are thalweg-codec's",
    ),
];

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
        folder: "crates/thalweg/src/grpc",
        forbidden: CLOCKS_AND_SOCKETS,
        why: "grpc/ is pure: bytes in, bytes out",
    },
];

const CLOCKS_AND_SOCKETS: &[&str] =
    &["tokio", "std::net", "std::os", "std::thread", "std::fs", "Instant::now", "SystemTime::now"];

/// `module` of the library must not import any of `forbidden`.
struct Arrow {
    module: &'static str,
    forbidden: &'static [&'static str],
    why: &'static str,
}

const ARROWS: &[Arrow] = &[
    Arrow { module: "grpc", forbidden: &["connection", "channel", "server", "net"], why: "grpc/ is pure" },
    Arrow { module: "net", forbidden: &["connection", "channel", "server"], why: "net/ only knows sockets" },
    Arrow {
        module: "connection",
        forbidden: &["channel", "server"],
        why: "channel/ and server/ stand above it",
    },
    Arrow { module: "channel", forbidden: &["server"], why: "the two sides know nothing of each other" },
    Arrow { module: "server", forbidden: &["channel"], why: "the two sides know nothing of each other" },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let metadata = Metadata::load(log)?;
    let sources = sources(&workspace::root().join("crates"))?;
    let mut broken = Vec::new();
    broken.extend(broken_layers(&metadata));
    broken.extend(broken_trees(&metadata));
    broken.extend(sources.iter().flat_map(|(path, source)| broken_purity(path, source)));
    broken.extend(sources.iter().flat_map(|(path, source)| broken_arrows(path, source)));
    for line in &broken {
        log.line(line)?;
    }
    match broken.len() {
        0 => Ok(format!("{} crates, {} files", metadata.members.len(), sources.len())),
        count => Err(Failure::failed(format!("{count} imports go against ARCHITECTURE.md's arrows"))),
    }
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
            let allowed =
                layer.normal.contains(&name) || (*kind != Kind::Normal && layer.beside.contains(&name));
            if members.contains(name) && !allowed && name != package.name {
                broken.push(format!("{} must not depend on {name} ({kind:?})", package.name));
            }
        }
    }
    broken
}

fn broken_trees(metadata: &Metadata) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, forbidden, why) in FORBIDDEN_IN_TREE {
        let tree = metadata.normal_tree(name);
        broken.extend(forbidden.iter().filter(|found| tree.contains(*found)).map(|found| {
            format!("{name} must not be built with {found}: {why} (`cargo tree --package {name} --invert {found}`)")
        }));
    }
    broken
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
    let Ok(path_in_crate) = path.strip_prefix("crates/thalweg/src") else { return Vec::new() };
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

/// All Rust files under `folder` but those of tests alone, by their path from the root.
fn sources(folder: &Path) -> Result<Vec<(PathBuf, Source)>, Failure> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.file_stem().is_some_and(|name| name == "tests") {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let source = Source::read(&fs::read_to_string(&path)?);
                found.push((path.strip_prefix(workspace::root()).unwrap_or(&path).to_owned(), source));
            }
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
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
        check("crates/thalweg/src/server/dispatch.rs", "use crate::channel::Lane;", &[1]);
        check("crates/thalweg/src/server.rs", "use crate::{grpc::Status,\n channel::{Lane}};", &[2]);
        check("crates/thalweg/src/connection/driver.rs", "use super::super::server::Routes;", &[1]);
        check("crates/thalweg/src/channel/lane.rs", "fn f() {\n crate::server::serve() }", &[2]);
        check("crates/thalweg/src/grpc/timeout.rs", "use std::time::Instant;\nlet x = Instant::now();", &[2]);
        check("crates/http2/src/lib.rs", "use tokio::time;", &[1]);
    }

    #[test]
    fn what_is_allowed_is_left_alone() {
        check(
            "crates/thalweg/src/server/dispatch.rs",
            "use crate::connection::Driver; use super::channel_of;",
            &[],
        );
        check("crates/thalweg/src/server/dispatch.rs", "// crate::channel\nlet x = \"crate::channel\";", &[]);
        check("crates/thalweg/src/server/dispatch.rs", "mod tests {\n use crate::channel::Channel; }", &[]);
        check("crates/http2/src/lib.rs", "/// Not tokio's.\nfn f(now: Instant) {}", &[]);
        check("crates/thalweg/src/net/tcp.rs", "use tokio::net::TcpStream;", &[]);
    }
}
