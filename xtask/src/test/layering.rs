//! No crate or module imports against the arrows of ARCHITECTURE.md, and comments and documents keep the rules of
//! `prose.rs`.
//!
//! `xtask/layering.json` has the allowed and forbidden names; this code knows none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::import_cycles::Crate;
use super::prose;
use super::source::module_of;
use crate::failure::Result;
use crate::files::{self, list, text};
use crate::job::Job;
use crate::metadata::{Dependency, Metadata};
use crate::{log, workspace};

const RULES: &str = "xtask/layering.json";

/// Names that pure folders must not use.
const CLOCKS_AND_SOCKETS: &[&str] =
    &["tokio", "std::net", "std::os", "std::thread", "std::fs", "Instant::now", "SystemTime::now"];

const ENGINE: &str = "crates/engine/src";

/// The maximum line width in columns; rustfmt does not wrap strings and comments.
const WIDTH: usize = 120;

pub(super) fn check() -> Result<String> {
    let (rules, metadata, files) = (rules()?, Metadata::load()?, sources()?);
    let prose = prose::rules()?;
    let mut violations = layer_violations(&rules, &metadata);
    violations.extend(tree_violations(&rules)?);
    for (path, text) in &files {
        violations.extend(line_violations(path, text));
        let is_root = path.file_name().is_some_and(|name| name == "lib.rs" || name == "main.rs");
        if is_root && !path.iter().any(|part| part == "tests") {
            let root = path.parent().unwrap_or(path);
            let files_of_crate = Crate::read(root, &files)?;
            violations.extend(purity_violations(&rules, &files_of_crate));
            violations.extend(cycle_violations(&rules, &root.display().to_string(), &files_of_crate));
            if root == Path::new(ENGINE) {
                violations.extend(import_violations(&rules, &files_of_crate));
            }
        }
    }
    for (path, text) in &with_prose()? {
        violations.extend(prose.breaches(path, text));
    }
    violations.iter().try_for_each(log::line)?;
    ensure!(
        violations.is_empty(),
        "{} violations of ARCHITECTURE.md or xtask/prose.json; see {}",
        violations.len(),
        log::path().display()
    );
    Ok(format!("{} crates, {} files", metadata.members.len(), files.len()))
}

fn rules() -> Result<Value> {
    files::json(&workspace::root().join(RULES))
}

/// Whether a list contains this name.
fn has(names: &Value, name: &str) -> bool {
    list(names).iter().any(|it| it == name)
}

/// Finds wide lines, and `x/mod.rs` in place of `x.rs`.
fn line_violations(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let wide = text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH);
    let mut violations: Vec<String> =
        wide.map(|(index, _)| format!("{shown}:{}: more than {WIDTH} columns", index + 1)).collect();
    if path.file_name().is_some_and(|name| name == "mod.rs") {
        violations.push(format!("{shown}: move it to {}.rs", path.parent().unwrap_or(path).display()));
    }
    violations
}

fn cycle_violations(rules: &Value, root: &str, files: &Crate) -> Vec<String> {
    let known = list(&rules["known_cycles"]).iter().find(|known| known["root"] == root);
    let known: Vec<&str> = known.map_or(&[][..], |known| list(&known["of"])).iter().map(text).collect();
    let resolved = |known: &&&str| {
        let is_of = |line: &String| **known == "*" || line.contains(&format!("{known}::"));
        !files.cycles(&[]).iter().flatten().any(is_of)
    };
    let resolved = known.iter().filter(resolved);
    let mut violations: Vec<String> = resolved
        .map(|of| format!("{root}: the import cycle of {of} is resolved: remove it from {RULES}"))
        .collect();
    if known != ["*"] {
        let cycles = files.cycles(&known).into_iter();
        violations
            .extend(cycles.map(|lines| format!("import cycle in {root}:\n    {}", lines.join("\n    "))));
    }
    violations
}

fn layer_violations(rules: &Value, metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> = metadata.member_packages().map(|package| package.name.as_str()).collect();
    let mut violations = Vec::new();
    for package in metadata.member_packages() {
        let Some(layer) = list(&rules["layers"]).iter().find(|layer| layer["crate"] == *package.name) else {
            violations.push(format!("{}: this crate has no layer; add it to one in {RULES}", package.name));
            continue;
        };
        for Dependency { name, kind, .. } in package.dependencies.iter().filter(|it| it.source.is_none()) {
            let is_allowed = has(&layer["imports"], name) || (kind.is_some() && has(&layer["besides"], name));
            if members.contains(name.as_str()) && !is_allowed && *name != package.name {
                violations.push(format!("{} must not depend on {name} ({kind:?})", package.name));
            }
        }
    }
    violations
}

/// Checks each crate alone: together with others, its dependencies would have their features, too.
fn tree_violations(rules: &Value) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for rule in list(&rules["trees"]) {
        let (name, why) = (text(&rule["crate"]), text(&rule["why"]));
        let words = format!("tree --package {name} --edges normal --prefix none --format {{p}}");
        let tree = Job::cargo(&words).minutes(5).quiet_text()?;
        let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        let found = list(&rule["forbidden"]).iter().map(text).filter(|name| names.contains(name));
        violations.extend(found.map(|found| {
            format!("{name} must not be built with {found}: {why} (`cargo tree --package {name} --invert {found}`)")
        }));
    }
    Ok(violations)
}

/// Finds clocks and sockets in pure folders.
fn purity_violations(rules: &Value, files: &Crate) -> Vec<String> {
    let mut violations = Vec::new();
    for rule in list(&rules["pure"]) {
        for file in files.files().iter().filter(|file| file.path.starts_with(text(&rule["folder"]))) {
            for forbidden in CLOCKS_AND_SOCKETS {
                let path_names: Vec<&str> = forbidden.split("::").collect();
                if file.named().any(|path| path.windows(path_names.len()).any(|names| names == path_names)) {
                    violations.push(format!("{}: {forbidden}: {}", file.path.display(), text(&rule["why"])));
                }
            }
        }
    }
    violations
}

/// Finds forbidden imports in the engine, through any re-exports.
fn import_violations(rules: &Value, engine: &Crate) -> Vec<String> {
    let top = |path: &Path| path.strip_prefix(ENGINE).ok().and_then(|path| module_of(path).first().cloned());
    let mut violations = Vec::new();
    for (from, to, names) in engine.imports_by_path() {
        let (Some(module), Some(imported)) = (top(from), top(to)) else { continue };
        let of_module = list(&rules["arrows"]).iter().filter(|rule| rule["module"] == *module);
        violations.extend(of_module.filter(|rule| has(&rule["forbidden"], &imported)).map(|rule| {
            let (from, why) = (from.display(), text(&rule["why"]));
            format!("{from}: {module} must not import {imported} ({names}): {why}")
        }));
    }
    violations
}

/// All our Rust files and their texts, by path from the root. Files under `golden` are generated.
fn sources() -> Result<Vec<(PathBuf, String)>> {
    texts(&["crates", "examples", "peers", "xtask"], &["rs"])
}

/// Documents, and sources whose comments are checked.
fn with_prose() -> Result<Vec<(PathBuf, String)>> {
    let extensions = [prose::SOURCES, &["md"]].concat();
    texts(&[".github", "crates", "deploy", "docs", "examples", "peers", "xtask", "."], &extensions)
}

/// The files with one of these extensions below these folders; in the root itself only direct ones.
fn texts(folders: &[&str], extensions: &[&str]) -> Result<Vec<(PathBuf, String)>> {
    let root = workspace::root();
    let mut found = Vec::new();
    for &of in folders {
        let not_ours = ["golden", "target", "node_modules"];
        let enters = |folder: &Path| of != "." && !not_ours.iter().any(|name| folder.ends_with(name));
        for path in files::below_if(&root.join(of), enters)? {
            if extensions.iter().any(|extension| files::has_extension(&path, extension)) {
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

    use super::{ENGINE, import_violations, purity_violations, rules};
    use crate::test::import_cycles::Crate;

    /// Checks the broken arrows of `text` in a file of the engine or another crate, next to the engine's modules.
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
        let rules = rules().unwrap();
        let root = path.split_inclusive("src").next().unwrap();
        let of_path = Crate::read(Path::new(root), &sources).unwrap();
        let mut violations = purity_violations(&rules, &of_path);
        if root == ENGINE {
            violations.extend(import_violations(&rules, &of_path));
        }
        assert_eq!(violations.len(), count, "{path}: {violations:#?}");
    }

    #[test]
    fn forbidden_imports_are_found() {
        check("crates/engine/src/server/dispatch.rs", "use crate::lanes::Lane;", 1);
        check("crates/engine/src/server/dispatch.rs", "use crate::Kept;", 1);
        check("crates/engine/src/server/dispatch.rs", "use crate::{grpc::Status,\n lanes::{Lane}};", 1);
        check("crates/engine/src/connection/driver.rs", "use super::super::server::Routes;", 1);
        check("crates/engine/src/lanes/lane.rs", "fn f() {\n crate::server::serve() }", 1);
        check("crates/engine/src/grpc/timeout.rs", "use std::time::Instant;\nfn f() { Instant::now(); }", 1);
        check("crates/http2/src/lib.rs", "use tokio::time;", 1);
    }

    #[test]
    fn allowed_imports_pass() {
        check(
            "crates/engine/src/server/dispatch.rs",
            "use crate::connection::Driver; use super::lanes_of;",
            0,
        );
        check(
            "crates/engine/src/server/dispatch.rs",
            "// crate::lanes\nconst X: &str = \"crate::lanes\";",
            0,
        );
        check("crates/engine/src/server/dispatch.rs", "mod tests {\n use crate::lanes::Lane; }", 0);
        check("crates/http2/src/lib.rs", "/// Not tokio's.\nfn f(now: Instant) {}", 0);
        check("crates/engine/src/net/tcp.rs", "use tokio::net::TcpStream;", 0);
    }
}
