//! `cargo xtask tonic-surface`: whether `crates/tonic` has all that is public in the tonic that the lock file names.
//!
//! Names are read from the sources of both, as words and braces. A module or item that `crates/tonic` re-exports from
//! tonic is there whole. Where it has a module of its own, the names in it, and the methods, public fields and traits
//! of their types, are looked for one by one; the methods on the crate's page, too. Signatures are not compared: what
//! generated code asks for is compiled by the crate's own tests.
//!
//! All of that is compared with all features, and again for each feature alone and for the sets of [`FEATURE_SETS`]:
//! of items behind a `cfg` those are left that the set switches on, by the `[features]` of the crate's manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::circles::leaf;
use super::tokens::{self, Token, module_of};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::log;
use crate::metadata::{Metadata, Package};
use crate::{files, workspace};

/// What `crates/tonic` leaves out, and why.
const EXCEPTIONS: &[(&str, &str)] =
    &[("transport::Error: impl StdError", "it is `std::error::Error` under another name")];

/// Feature sets that dependents ask for, each without the default features. tonic's single features are added to them.
const FEATURE_SETS: &[&str] = &[
    "",
    "codegen router",
    "codegen channel",
    "codegen server",
    "codegen gzip zstd",
    "codegen channel tls-ring tls-native-roots",
    "codegen router server tls-aws-lc",
    "codegen router transport",
];

/// What `crates/tonic` does with each function of its own modules.
const PAGE: &str = "docs/tonic.md";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    log::start("tonic-surface")?;
    let found = Compared::find()?;
    println!("{}", found.looked_for());
    for (name, why) in EXCEPTIONS {
        println!("left out: {name}: {why}");
    }
    for line in &found.wrong {
        println!("{line}");
    }
    Ok(if found.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn check() -> Result<String> {
    let found = Compared::find()?;
    for line in &found.wrong {
        log::line(line)?;
    }
    match found.wrong.len() {
        0 => Ok(found.looked_for()),
        count => Err(failed!("{}: {count} lines for crates/tonic", found.looked_for())),
    }
}

struct Compared {
    version: String,
    count: usize,
    /// How many sets of features were compared.
    sets: usize,
    /// A line for each name that is missing, and for each exception that is none.
    wrong: Vec<String>,
}

impl Compared {
    fn find() -> Result<Self> {
        let metadata = Metadata::load()?;
        let package = |name: &str| metadata.packages.iter().find(|package| package.name == name);
        let tonic = package("tonic");
        let tonic = tonic.ok_or_else(|| failed!("no crate of the workspace is built with tonic"))?;
        let drop_in = package("thalweg-tonic").ok_or_else(|| failed!("there is no crates/tonic"))?;
        let (theirs, ours) = (Surface::of(tonic, None)?, Surface::of(drop_in, None)?);
        let missing = theirs.missing_from(&ours);
        let is_excepted = |name: &String| EXCEPTIONS.iter().any(|(exception, _)| exception == name);
        let page = fs::read_to_string(workspace::root().join(PAGE))?;
        let untold = missing.iter().filter(|name| !is_excepted(name));
        let idle = EXCEPTIONS.iter().filter(|(name, _)| !missing.contains(*name));
        let wrong = untold
            .map(|name| format!("missing: {name}"))
            .chain(theirs.functions_beside(&ours).into_iter().filter_map(|name| {
                let is_told = page.contains(&format!("`{name}`")) || page.contains(&format!("::{name}`"));
                (!is_told).then(|| format!("not in {PAGE}: {name}"))
            }))
            .chain(idle.map(|(name, _)| format!("on the list of exceptions, and not missing: {name}")));
        let mut wrong: Vec<String> = wrong.collect();
        let singles = theirs.features.keys().map(String::as_str).filter(|name| !name.starts_with('_'));
        let sets: BTreeSet<&str> = FEATURE_SETS.iter().copied().chain(singles).collect();
        for set in &sets {
            let missing = Surface::of(tonic, Some(set))?
                .missing_from(&Surface::of(drop_in, Some(set))?)
                .into_iter()
                .filter(|name| !is_excepted(name));
            wrong.extend(missing.map(|name| format!("missing with the features `{set}` alone: {name}")));
        }
        let (version, count) = (tonic.version.clone(), theirs.count_beside(&ours));
        Ok(Self { version, count, sets: sets.len(), wrong })
    }

    fn looked_for(&self) -> String {
        format!("{} names of tonic {}, and {} sets of features", self.count, self.version, self.sets)
    }
}

/// What a crate has for others to use.
#[derive(Debug, Default)]
struct Surface {
    /// The names in each module that is declared public, and in others.
    modules: BTreeMap<Vec<String>, BTreeMap<String, Origin>>,
    /// Public methods, fields and traits, by the top module and name of their type.
    members: BTreeMap<(String, String), BTreeSet<String>>,
    /// The features, each with what it switches on.
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Item,
    Module,
    /// Re-exported, from this path.
    Used(Vec<String>),
}

impl Surface {
    /// Reads the sources of a crate, as they are with a set of features, or with all of them.
    fn of(package: &Package, set: Option<&str>) -> Result<Self> {
        let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
        let enabled = set.map(|set| enabled(&package.features, set));
        let mut surface = Self { features: package.features.clone(), ..Self::default() };
        let sources = files::below(&folder.join("src"))?;
        for path in sources.iter().filter(|path| files::has_extension(path, "rs")) {
            let text = fs::read_to_string(path)?;
            match &enabled {
                None => surface.add(path, &text),
                Some(enabled) => surface.add(path, &without_disabled(&text, enabled)),
            }
        }
        Ok(surface)
    }

    /// What a file has; its path has a folder `src`.
    fn add(&mut self, path: &Path, text: &str) {
        let parts: Vec<_> = path.iter().collect();
        let root = parts.iter().rposition(|part| *part == "src").map_or(0, |at| at + 1);
        let module = module_of(&parts[root..].iter().collect::<PathBuf>());
        let tokens = tokens::read(text).kept;
        self.add_names(&module, &tokens);
        self.add_members(&module, &tokens);
    }

    fn add_names(&mut self, module: &[String], tokens: &[Token]) {
        let text = |position: usize| tokens.get(position).map_or("", |token| token.text.as_str());
        for (position, token) in tokens.iter().enumerate().filter(|(_, token)| token.depth == 0) {
            if token.text == "macro_rules" && text(position.wrapping_sub(2)) == "macro_export" {
                let names = self.modules.entry(Vec::new()).or_default();
                names.insert(text(position + 2).to_owned(), Origin::Item);
            }
            if token.text != "pub" || text(position + 1) == "(" {
                continue;
            }
            let names = self.modules.entry([module, &token.inline[..]].concat()).or_default();
            let Some(keyword) = (position + 1..position + 5).find(|at| DEFINING.contains(&text(*at))) else {
                continue;
            };
            match text(keyword) {
                "use" => {
                    let mut found = Vec::new();
                    leaf(tokens, keyword + 1, &[], &mut found);
                    names.extend(found.into_iter().map(|(name, path)| (name, Origin::Used(path))));
                }
                "mod" => drop(names.insert(text(keyword + 1).to_owned(), Origin::Module)),
                _ => drop(names.insert(text(keyword + 1).to_owned(), Origin::Item)),
            }
        }
    }

    fn add_members(&mut self, module: &[String], tokens: &[Token]) {
        let text = |position: usize| tokens.get(position).map_or("", |token| token.text.as_str());
        let top = module.first().cloned().unwrap_or_default();
        let mut owner: Option<String> = None;
        let mut derived: Vec<String> = Vec::new();
        for (position, token) in tokens.iter().enumerate() {
            let mut add = |owner: &str, member: String| {
                self.members.entry((top.clone(), owner.to_owned())).or_default().insert(member);
            };
            match (token.depth, token.text.as_str()) {
                (0, "derive") => {
                    let words = tokens[position + 2..].iter().take_while(|token| token.text != ")");
                    derived.extend(words.filter(|token| token.text != ",").map(|token| token.text.clone()));
                }
                (0, "struct" | "enum") => {
                    derived.drain(..).for_each(|name| add(text(position + 1), format!("impl {name}")));
                    owner = (token.text == "struct").then(|| text(position + 1).to_owned());
                }
                (0, "impl") if text(position + 1) != "Trait" && starts_item(tokens, position) => {
                    let (implemented, of) = header(tokens, position + 1);
                    if let Some(name) = &implemented {
                        add(&of, format!("impl {name}"));
                    }
                    owner = implemented.is_none().then_some(of);
                }
                (1, "pub") if text(position + 1) != "(" => {
                    let Some(owner) = &owner else { continue };
                    let function = (position + 1..position + 5).find(|at| text(*at) == "fn");
                    match function {
                        Some(at) => add(owner, format!("fn {}", text(at + 1))),
                        None if text(position + 2) == ":" => {
                            add(owner, format!("field {}", text(position + 1)));
                        }
                        None => {}
                    }
                }
                _ => {}
            }
        }
    }

    /// Public modules that `ours` does not have from this crate whole, with their names.
    fn own_modules<'a>(&'a self, ours: &'a Self) -> Vec<(&'a [String], &'a BTreeMap<String, Origin>)> {
        let mut found = Vec::new();
        let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let Some((path, names)) = self.modules.get_key_value(&path) else { continue };
            found.push((path.as_slice(), names));
            for (name, _) in names.iter().filter(|(_, origin)| **origin == Origin::Module) {
                if ours.origin(path, name) == Some(&Origin::Module) {
                    waiting.push([path, std::slice::from_ref(name)].concat());
                }
            }
        }
        found
    }

    fn origin(&self, module: &[String], name: &str) -> Option<&Origin> {
        self.modules.get(module)?.get(name)
    }

    fn is_from_tonic(&self, module: &[String], name: &str) -> bool {
        matches!(self.origin(module, name), Some(Origin::Used(path)) if path[0] == "tonic")
    }

    fn missing_from(&self, ours: &Self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for (module, names) in self.own_modules(ours) {
            for name in names.keys() {
                let path = [module, std::slice::from_ref(name)].concat().join("::");
                if ours.origin(module, name).is_none() {
                    missing.insert(path);
                } else if !ours.is_from_tonic(module, name) {
                    let none = BTreeSet::new();
                    let key = (module.first().cloned().unwrap_or_default(), name.clone());
                    let has = ours.members.get(&key).unwrap_or(&none);
                    let wanted = self.members.get(&key).unwrap_or(&none);
                    missing.extend(wanted.difference(has).map(|member| format!("{path}: {member}")));
                }
            }
        }
        let is_private = |name: &&String| name.starts_with('_');
        let features = self.features.keys().filter(|name| !ours.features.contains_key(*name));
        missing.extend(features.filter(|name| !is_private(name)).map(|name| format!("feature {name}")));
        missing
    }

    /// All that a crate with the modules and items of `ours`, and nothing in them, has not.
    fn members_beside(&self, ours: &Self) -> BTreeSet<String> {
        self.missing_from(&Self { modules: ours.modules.clone(), ..Self::default() })
    }

    /// How many names there are in modules that `ours` has of its own, with the members of their types.
    fn count_beside(&self, ours: &Self) -> usize {
        let names: usize = self.own_modules(ours).iter().map(|(_, names)| names.len()).sum();
        names + self.members_beside(ours).len()
    }

    /// The names of the methods among them.
    fn functions_beside(&self, ours: &Self) -> BTreeSet<String> {
        let members = self.members_beside(ours);
        members.iter().filter_map(|member| Some(member.split_once(": fn ")?.1.to_owned())).collect()
    }
}

const DEFINING: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "use"];

/// Whether an item begins at `position`, and it is no `impl` in a type.
fn starts_item(tokens: &[Token], position: usize) -> bool {
    let before = position.checked_sub(1).map(|at| tokens[at].text.as_str());
    matches!(before, None | Some("}" | ";" | "]" | "unsafe"))
}

/// Of an `impl` whose head goes on at `position`: the trait, if it is of one, and the type.
fn header(tokens: &[Token], position: usize) -> (Option<String>, String) {
    let mut paths = vec![String::new()];
    let mut angles = 0_i32;
    let mut is_generics = tokens.get(position).is_some_and(|token| token.text == "<");
    for (at, token) in tokens.iter().enumerate().skip(position) {
        let is_arrow = token.text == ">" && tokens[at - 1].text == "-";
        match token.text.as_str() {
            "<" => angles += 1,
            ">" if !is_arrow => angles -= 1,
            _ => {}
        }
        if is_generics {
            is_generics = angles > 0;
            continue;
        }
        match token.text.as_str() {
            "{" | "where" if angles == 0 => break,
            "for" if angles == 0 => paths.push(String::new()),
            // Paths are told apart by their last names alone: `fmt::Debug` is `Debug`.
            "::" => {
                let path = paths.last_mut().expect("there is one");
                let kept =
                    path.rfind(|last: char| !(last.is_alphanumeric() || last == '_')).map_or(0, |at| at + 1);
                path.truncate(kept);
            }
            word => paths.last_mut().expect("there is one").push_str(word),
        }
    }
    let of = paths.pop().unwrap_or_default();
    let of = of.split('<').next().unwrap_or_default().to_owned();
    (paths.pop(), of)
}

/// The features that are on with those of `set`.
fn enabled(features: &BTreeMap<String, Vec<String>>, set: &str) -> BTreeSet<String> {
    let mut enabled = BTreeSet::new();
    let mut waiting: Vec<&str> = set.split_whitespace().collect();
    while let Some(name) = waiting.pop() {
        if let Some(more) = features.get(name).filter(|_| enabled.insert(name.to_owned())) {
            waiting.extend(more.iter().map(String::as_str));
        }
    }
    enabled
}

/// `text` in which each item behind a `cfg` that `enabled` does not satisfy is one for tests, which are left out later.
/// A field or statement stays.
fn without_disabled(text: &str, enabled: &BTreeSet<String>) -> String {
    const CFG: &str = "#[cfg(";
    let mut left = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(CFG) {
        let (before, after) = rest.split_at(start);
        let mut condition = Condition(&after[CFG.len()..]);
        let holds = condition.holds(enabled);
        let behind = condition.0.strip_prefix(")]").unwrap_or(condition.0);
        left += before;
        let item = behind_attributes(behind);
        left += if !holds && is_item(item) { "#[cfg(test)]" } else { "" };
        rest = behind;
    }
    left + rest
}

/// `text` without the attributes that it starts with.
fn behind_attributes(text: &str) -> &str {
    let mut text = text.trim_start();
    while text.starts_with("#[") {
        let mut depth = 0_i32;
        let end = text.find(|character| {
            depth += i32::from(character == '[') - i32::from(character == ']');
            character == ']' && depth == 0
        });
        text = end.map_or("", |end| text[end + 1..].trim_start());
    }
    text
}

/// Whether `text` starts with an item, and not with a field or a statement.
fn is_item(text: &str) -> bool {
    const STARTS: &[&str] = &[
        "fn", "async", "unsafe", "struct", "enum", "trait", "impl", "type", "const", "static", "mod", "use",
    ];
    let text = text.strip_prefix("pub").map_or(text, |behind| {
        let behind = behind.trim_start();
        behind.strip_prefix('(').and_then(|scope| scope.split_once(')')).map_or(behind, |(_, behind)| behind)
    });
    let word = text.trim_start().split(|end: char| !end.is_alphanumeric() && end != '_').next();
    STARTS.contains(&word.unwrap_or_default())
}

/// What is left to read of the condition of a `cfg`.
struct Condition<'t>(&'t str);

impl<'t> Condition<'t> {
    /// Reads one predicate. What is asked about is a feature; `test` does not hold, and all else does.
    fn holds(&mut self, enabled: &BTreeSet<String>) -> bool {
        let word = self.word();
        if self.skip("(") {
            let mut all = Vec::new();
            while !self.skip(")") && !self.0.is_empty() {
                all.push(self.holds(enabled));
                self.skip(",");
            }
            return match word {
                "any" => all.contains(&true),
                "not" => all == [false],
                _ => !all.contains(&false),
            };
        }
        if !self.skip("=") {
            return word != "test";
        }
        self.skip("\"");
        let (value, behind) = self.0.split_once('"').unwrap_or((self.0, ""));
        self.0 = behind;
        word != "feature" || enabled.contains(value)
    }

    fn word(&mut self) -> &'t str {
        let text = self.0.trim_start();
        let end = text.find(|end: char| !end.is_alphanumeric() && end != '_').unwrap_or(text.len());
        let (word, behind) = text.split_at(end);
        self.0 = behind;
        word
    }

    fn skip(&mut self, mark: &str) -> bool {
        let behind = self.0.trim_start().strip_prefix(mark);
        self.0 = behind.unwrap_or(self.0);
        behind.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(files: &[(&str, &str)]) -> Surface {
        let mut surface = Surface::default();
        for (path, text) in files {
            surface.add(&Path::new("src").join(path), text);
        }
        surface
    }

    fn check(theirs: &[(&str, &str)], ours: &[(&str, &str)], missing: &[&str]) {
        let found: Vec<_> = surface(theirs).missing_from(&surface(ours)).into_iter().collect();
        assert_eq!(found, missing, "{theirs:?} {ours:?}");
    }

    #[test]
    fn names_of_public_modules_are_looked_for() {
        check(&[("lib.rs", "pub struct A;")], &[("lib.rs", "")], &["A"]);
        check(&[("lib.rs", "pub struct A;")], &[("lib.rs", "pub use tonic::A;")], &[]);
        check(&[("lib.rs", "pub use a::{B, c::D as E};")], &[("lib.rs", "pub struct B;")], &["E"]);
        check(
            &[("lib.rs", "struct A; pub(crate) struct B; mod c;"), ("c.rs", "pub struct D;")],
            &[("lib.rs", "")],
            &[],
        );
        check(&[("lib.rs", "#[macro_export]\nmacro_rules! a { () => {} }")], &[("lib.rs", "")], &["a"]);
        let theirs = [
            ("lib.rs", "pub mod a;"),
            ("a/mod.rs", "pub mod b; pub fn f() {}"),
            ("a/b.rs", "pub type T = u8;"),
        ];
        check(&theirs, &[("lib.rs", "pub use tonic::a;")], &[]);
        check(&theirs, &[("lib.rs", "pub mod a;"), ("a.rs", "pub use tonic::a::b;")], &["a::f"]);
        check(&theirs, &[("lib.rs", "pub mod a;"), ("a.rs", "pub fn f() {} pub mod b;")], &["a::b::T"]);
        check(&theirs, &[("lib.rs", "pub mod a { pub fn f() {} }")], &["a::b"]);
    }

    #[test]
    fn members_of_types_are_looked_for() {
        let check = |theirs: &str, ours: &str, missing: &[&str]| {
            let theirs = format!("pub struct A; {theirs}");
            check(&[("lib.rs", &theirs)], &[("lib.rs", &format!("pub struct A; {ours}"))], missing);
            check(&[("lib.rs", &theirs)], &[("lib.rs", "pub use tonic::A;")], &[]);
        };
        check("impl A { pub fn f() {} fn g() {} pub(crate) fn h() {} }", "", &["A: fn f"]);
        check("impl A { pub const fn f() {} }", "impl A { pub async fn f() {} }", &[]);
        check("impl<T: Into<u8>> A<T> where T: X<u8> { pub fn f() { pub fn g() {} } }", "", &["A: fn f"]);
        check("impl Copy for A where u8: Copy {}", "", &["A: impl Copy"]);
        check("impl fmt::Debug for A { }", "impl std::fmt::Debug for A {}", &[]);
        check("impl From<http::Uri> for A {}", "impl From<Uri> for A {}", &[]);
        check("impl TryFrom<Vec<u8>> for A {}", "impl TryFrom<u8> for A {}", &["A: impl TryFrom<Vec<u8>>"]);
        check("fn f() -> impl Send { } impl B { pub fn f() {} }", "", &[]);
        check("impl Fn(u8) -> u8 for A {}", "", &["A: impl Fn(u8)->u8"]);
    }

    #[test]
    fn functions_of_own_types_are_for_the_page() {
        let theirs =
            surface(&[("lib.rs", "pub struct A; impl A { pub fn f() {} fn g() {} } impl Clone for A {}")]);
        let functions = |ours: &str| theirs.functions_beside(&surface(&[("lib.rs", ours)]));
        assert_eq!(functions("pub struct A; impl A { pub fn f() {} }"), ["f".to_owned()].into());
        assert_eq!(functions("pub use tonic::A;"), BTreeSet::new());
    }

    #[test]
    fn derived_traits_and_fields_are_members() {
        let theirs = "#[derive(Clone, Debug)]\npub struct A { pub b: u8, c: u8, pub(crate) d: u8 }";
        check(
            &[("lib.rs", theirs)],
            &[("lib.rs", "pub struct A { b: u8 } impl Clone for A {}")],
            &["A: field b", "A: impl Debug"],
        );
    }

    /// `name: feature feature`
    fn features(lines: &[&str]) -> BTreeMap<String, Vec<String>> {
        let lines = lines.iter().map(|line| line.split_once(':').unwrap());
        lines
            .map(|(name, on)| (name.to_owned(), on.split_whitespace().map(str::to_owned).collect()))
            .collect()
    }

    #[test]
    fn features_are_looked_for() {
        let theirs = Surface { features: features(&["_a:", "b:"]), ..Surface::default() };
        assert_eq!(theirs.missing_from(&Surface::default()), ["feature b".to_owned()].into());
    }

    #[test]
    fn a_feature_switches_on_others() {
        let all = features(&["a: b dep:c", "b: d/e", "f:"]);
        let check = |set: &str, on: &[&str]| {
            assert_eq!(enabled(&all, set).iter().collect::<Vec<_>>(), on, "{set}");
        };
        check("", &[]);
        check("a", &["a", "b"]);
        check("b f", &["b", "f"]);
    }

    #[test]
    fn items_behind_other_features_are_left_out() {
        let check = |text: &str, set: &str, names: &[&str]| {
            let enabled = set.split(' ').map(str::to_owned).collect();
            let mut surface = Surface::default();
            surface.add(Path::new("src/lib.rs"), &without_disabled(text, &enabled));
            let found: Vec<_> = surface.modules.values().flat_map(BTreeMap::keys).cloned().collect();
            assert_eq!(found, names, "{text} with `{set}`");
        };
        check("#[cfg(feature = \"a\")] pub mod b; pub mod c;", "a", &["b", "c"]);
        check("#[cfg(feature = \"a\")] pub mod b; pub mod c;", "", &["c"]);
        check(
            "#[cfg(any(feature = \"a\", feature = \"b\"))]\npub use c::{d, e}; pub fn f() {}",
            "b",
            &["d", "e", "f"],
        );
        check("#[cfg(any(feature = \"a\", feature = \"b\"))]\npub use c::{d, e}; pub fn f() {}", "", &["f"]);
        check(
            "#[cfg(all(unix, feature = \"a\"))] #[doc(x)] pub struct B { c: u8 } pub struct D;",
            "",
            &["D"],
        );
        check("#[cfg(not(feature = \"a\"))] pub struct B;", "a", &[]);
        check("#[cfg(not(feature = \"a\"))] pub struct B;", "", &["B"]);
        check(
            "#[cfg(feature = \"a\")]\n#[derive(Clone, Debug)]\npub struct B { c: [u8; 1] } pub struct D;",
            "",
            &["D"],
        );
        check("#[cfg(unix)] pub struct B;", "", &["B"]);
        check("pub struct A { #[cfg(feature = \"a\")] pub b: u8 } pub struct C;", "", &["A", "C"]);
    }
}
