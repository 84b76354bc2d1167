//! `cargo xtask tonic-surface`: compares the public API of `crates/tonic`, and of its package for `[patch]`, with that
//! of the locked tonic version.
//!
//! Names are parsed from the sources. In modules that `crates/tonic` defines itself, each name is checked, and so are
//! the methods, public fields and traits of their types. Methods must also be on the crate's page. For what it
//! re-exports, names, methods and fields are those of the package with the types: tonic itself, or `crates/core`.
//! Signatures are not compared: tests compile generated code.
//!
//! The comparison runs with all features, with each feature alone, and with the sets of [`FEATURE_SETS`]. Items behind
//! a `cfg` count if the set enables them, according to the `[features]` in the crates' manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, ItemImpl, Token, Visibility};

use super::source::{Cfg, attributes, declared, imported_names, is_kept, joined, module_of, type_name};
use crate::arguments::Arguments;
use crate::failure::Result;
use crate::log;
use crate::metadata::{Metadata, Package};
use crate::{files, workspace};

/// Names that are left out, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("transport::Error: impl StdError", "it is `std::error::Error` under another name"),
    ("service::interceptor::ResponseBody", DECLARED_BY_MACRO),
    ("service::interceptor::ResponseFuture", DECLARED_BY_MACRO),
    ("service::recover_error::ResponseBody", DECLARED_BY_MACRO),
    ("service::recover_error::ResponseFuture", DECLARED_BY_MACRO),
];
const DECLARED_BY_MACRO: &str = "it is in `crates/core`, declared by `pin_project!`";

/// Feature sets of dependents, without default features. Each single feature of tonic is checked, too.
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

/// Name of the dependency with the types that `crates/tonic` re-exports.
const VOCABULARY: &str = "vocabulary";

/// The page that lists each function of its own modules.
const PAGE: &str = "docs/tonic.md";

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    arguments.finish()?;
    log::start("tonic-surface")?;
    let (summary, problems) = compare()?;
    println!("{summary}");
    for (name, why) in EXCEPTIONS {
        println!("left out: {name}: {why}");
    }
    for line in &problems {
        println!("{line}");
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn check() -> Result<String> {
    let (summary, problems) = compare()?;
    problems.iter().try_for_each(log::line)?;
    ensure!(problems.is_empty(), "{summary}: {} lines for crates/tonic", problems.len());
    Ok(summary)
}

/// Returns a summary, and a line for each missing name and each unnecessary exception.
fn compare() -> Result<(String, Vec<String>)> {
    let metadata = Metadata::load()?;
    let tonic = Crate::parse(metadata.registry_package("tonic")?)?;
    let core = Crate::parse(metadata.member("thalweg-core")?)?;
    let drop_in = Crate::parse(metadata.member("thalweg-tonic")?)?;
    let patch = Crate::parse(metadata.member("tonic")?)?;

    let features = tonic.package.features.keys().map(String::as_str);
    let single_features = features.filter(|name| !name.starts_with('_'));
    let sets: BTreeSet<&str> = FEATURE_SETS.iter().copied().chain(single_features).collect();
    let (mut problems, mut excepted) = (Vec::new(), BTreeSet::new());
    for set in [None].into_iter().chain(sets.iter().copied().map(Some)) {
        let theirs = tonic.surface(&Cfg::of(tonic.package, set));
        for (ours, vocabulary) in [(&drop_in, &tonic), (&patch, &core)] {
            let own_vocabulary = vocabulary.package.name != tonic.package.name;
            let cfg = Cfg { own_vocabulary, ..Cfg::of(ours.package, set) };
            let set_of_vocabulary = set.map(|_| ours.features_of_vocabulary(&cfg));
            let vocabulary = vocabulary.surface(&Cfg::of(vocabulary.package, set_of_vocabulary.as_deref()));
            let Package { name, version, .. } = ours.package;
            let with = set.map_or("all features".to_owned(), |set| format!("the features `{set}` alone"));
            let ours = ours.surface(&cfg);
            let missing = theirs.missing_from(&ours);
            for missing in missing.into_iter().chain(theirs.missing_from_vocabulary(&vocabulary, &ours)) {
                if EXCEPTIONS.iter().any(|(exception, _)| *exception == missing) {
                    excepted.insert(missing);
                } else {
                    problems.push(format!("missing in {name} {version} with {with}: {missing}"));
                }
            }
        }
    }
    let unneeded = EXCEPTIONS.iter().filter(|(name, _)| !excepted.contains(*name));
    problems.extend(unneeded.map(|(name, _)| format!("listed as an exception, but not missing: {name}")));

    let (theirs, ours) = (tonic.surface(&Cfg::default()), drop_in.surface(&Cfg::default()));
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let methods = theirs.expected_methods(&ours);
    let is_listed =
        |name: &&String| page.contains(&format!("`{name}`")) || page.contains(&format!("::{name}`"));
    let unlisted = methods.iter().filter(|name| !is_listed(name));
    problems.extend(unlisted.map(|name| format!("not in {PAGE}: {name}")));

    let (count, version) = (theirs.compared_count(&ours), &tonic.package.version);
    let sets = sets.len();
    Ok((format!("{count} names of tonic {version}, and {sets} sets of features, by two packages"), problems))
}

/// The parsed sources of a package's library.
struct Crate<'p> {
    package: &'p Package,
    /// The module and the items of each file.
    files: Vec<(Vec<String>, Vec<Item>)>,
}

impl<'p> Crate<'p> {
    fn parse(package: &'p Package) -> Result<Self> {
        let folder = package.library_folder().ok_or_else(|| failed!("{} has no library", package.name))?;
        let mut files = Vec::new();
        for path in files::below(folder)?.iter().filter(|path| files::has_extension(path, "rs")) {
            let parsed = syn::parse_file(&fs::read_to_string(path)?);
            let parsed = parsed.map_err(|why| failed!("{}: {why}", path.display()))?;
            files.push((module_of(path.strip_prefix(folder).unwrap_or(path)), parsed.items));
        }
        Ok(Self { package, files })
    }

    fn surface(&self, cfg: &Cfg) -> Surface {
        let mut surface = Surface { features: self.package.features.clone(), ..Surface::default() };
        for (module, items) in &self.files {
            surface.add(module, items, cfg);
        }
        surface
    }

    /// The features of its vocabulary that it enables.
    fn features_of_vocabulary(&self, cfg: &Cfg) -> String {
        let is_vocabulary = |rename: &Option<String>| rename.as_deref() == Some(VOCABULARY);
        let dependencies = self.package.dependencies.iter().filter(|it| is_vocabulary(&it.rename));
        let always = dependencies.flat_map(|it| &it.features).map(String::as_str);
        let enabled = cfg.features.iter().flatten();
        let enables = enabled.filter_map(|feature| self.package.features.get(feature)).flatten();
        let enables = enables.filter_map(|it| it.strip_prefix(VOCABULARY)?.strip_prefix('/'));
        always.chain(enables).collect::<Vec<_>>().join(" ")
    }
}

impl Cfg {
    /// The conditions of a build with a set of the package's features, or with any.
    fn of(package: &Package, set: Option<&str>) -> Self {
        Self { features: set.map(|set| enabled(&package.features, set)), own_vocabulary: false }
    }
}

/// The public API of a crate.
#[derive(Debug, Default)]
struct Surface {
    /// The names in each module, public or not.
    modules: BTreeMap<Vec<String>, BTreeMap<String, Origin>>,
    /// Public methods, fields and traits, by top module and type name.
    members: BTreeMap<(String, String), BTreeSet<String>>,
    /// The features, each with those that it enables.
    features: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Item,
    Module,
    /// Re-exported from this path.
    Used(Vec<String>),
}

impl Surface {
    /// Adds the items of a module.
    fn add(&mut self, module: &[String], items: &[Item], cfg: &Cfg) {
        for item in items.iter().filter(|item| is_kept(attributes(item), cfg)) {
            let members = match item {
                Item::Struct(it) => {
                    let fields = it.fields.iter().filter(|field| is_public(&field.vis));
                    let fields = fields.filter_map(|it| Some(format!("field {}", it.ident.as_ref()?)));
                    Some((it.ident.to_string(), fields.chain(derived(&it.attrs)).collect()))
                }
                Item::Enum(it) => Some((it.ident.to_string(), derived(&it.attrs))),
                Item::Impl(it) => members(it, cfg),
                Item::Mod(syn::ItemMod { content: Some((_, items)), ident, .. }) => {
                    if ident != "tests" {
                        self.add(&joined(module, &ident.to_string()), items, cfg);
                    }
                    None
                }
                _ => None,
            };
            if let Some((owner, members)) = members {
                let top = module.first().cloned().unwrap_or_default();
                self.members.entry((top, owner)).or_default().extend(members);
            }
            let names = names(item);
            let module = if let Item::Macro(_) = item { &[] } else { module };
            if !names.is_empty() {
                self.modules.entry(module.to_vec()).or_default().extend(names);
            }
        }
    }

    /// Public modules, with their names, that `ours` does not re-export as a whole.
    fn defined_modules<'a>(&'a self, ours: &'a Self) -> Vec<(&'a [String], &'a BTreeMap<String, Origin>)> {
        let mut found = Vec::new();
        let mut pending: Vec<Vec<String>> = vec![Vec::new()];
        while let Some(path) = pending.pop() {
            let Some((path, names)) = self.modules.get_key_value(&path) else { continue };
            found.push((path.as_slice(), names));
            for (name, _) in names.iter().filter(|(_, origin)| **origin == Origin::Module) {
                if ours.origin(path, name) == Some(&Origin::Module) {
                    pending.push([path, std::slice::from_ref(name)].concat());
                }
            }
        }
        found
    }

    fn origin(&self, module: &[String], name: &str) -> Option<&Origin> {
        self.modules.get(module)?.get(name)
    }

    fn is_from_vocabulary(&self, module: &[String], name: &str) -> bool {
        matches!(self.origin(module, name), Some(Origin::Used(path)) if path[0] == VOCABULARY)
    }

    fn missing_from(&self, ours: &Self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for (module, names) in self.defined_modules(ours) {
            for name in names.keys() {
                let path = [module, std::slice::from_ref(name)].concat().join("::");
                if ours.origin(module, name).is_none() {
                    missing.insert(path);
                } else if !ours.is_from_vocabulary(module, name) {
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

    /// Names that `ours` re-exports from its vocabulary, and methods and fields of their types, that `vocabulary`
    /// lacks.
    fn missing_from_vocabulary(&self, vocabulary: &Self, ours: &Self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        let (theirs_of, has_of) = (self.members_by_type(), vocabulary.members_by_type());
        let mut pending: Vec<Vec<String>> = vec![Vec::new()];
        while let Some(module) = pending.pop() {
            let Some(names) = self.modules.get(&module) else { continue };
            for (name, origin) in names {
                let path = [&module[..], std::slice::from_ref(name)].concat();
                let is_ours = ours.origin(&module, name).is_some() && !ours.is_from_vocabulary(&module, name);
                if !is_ours && vocabulary.origin(&module, name).is_none() {
                    missing.insert(path.join("::"));
                } else if *origin == Origin::Module {
                    pending.push(path);
                } else if is_ours {
                } else if let Some(wanted) = theirs_of.get(name.as_str()) {
                    let none = BTreeSet::new();
                    let lacks = wanted.difference(has_of.get(name.as_str()).unwrap_or(&none));
                    missing.extend(lacks.map(|member| format!("{}: {member}", path.join("::"))));
                }
            }
        }
        missing
    }

    /// The methods and fields of all types of a name.
    fn members_by_type(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for ((_, name), members) in &self.members {
            let members = members.iter().map(String::as_str).filter(|member| !member.starts_with("impl "));
            all.entry(name).or_default().extend(members);
        }
        all
    }

    /// All members that are missing in a crate with the modules and items of `ours` but no members.
    fn expected_members(&self, ours: &Self) -> BTreeSet<String> {
        self.missing_from(&Self { modules: ours.modules.clone(), ..Self::default() })
    }

    /// Number of names in modules that `ours` defines itself, plus the members of their types.
    fn compared_count(&self, ours: &Self) -> usize {
        let names: usize = self.defined_modules(ours).iter().map(|(_, names)| names.len()).sum();
        names + self.expected_members(ours).len()
    }

    /// The names of the methods among these members.
    fn expected_methods(&self, ours: &Self) -> BTreeSet<String> {
        let members = self.expected_members(ours);
        members.iter().filter_map(|member| Some(member.split_once(": fn ")?.1.to_owned())).collect()
    }
}

/// The names that an item makes public.
fn names(item: &Item) -> Vec<(String, Origin)> {
    match item {
        Item::Use(it) if is_public(&it.vis) => {
            let mut found = Vec::new();
            imported_names(&it.tree, &[], &mut found);
            found.into_iter().map(|(name, path)| (name, Origin::Used(path))).collect()
        }
        Item::Macro(it) if it.attrs.iter().any(|it| it.path().is_ident("macro_export")) => {
            it.ident.iter().map(|ident| (ident.to_string(), Origin::Item)).collect()
        }
        item => {
            let origin = if let Item::Mod(_) = item { Origin::Module } else { Origin::Item };
            let public = declared(item).filter(|(visibility, _)| is_public(visibility));
            public.map(|(_, ident)| (ident.to_string(), origin)).into_iter().collect()
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The derived traits.
fn derived(attributes: &[Attribute]) -> BTreeSet<String> {
    let derives = attributes.iter().filter(|it| it.path().is_ident("derive"));
    let traits = derives
        .filter_map(|it| it.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated).ok());
    traits.flatten().map(|it| format!("impl {}", short(&it))).collect()
}

/// The type of an `impl`, with the trait or the public methods.
fn members(it: &ItemImpl, cfg: &Cfg) -> Option<(String, BTreeSet<String>)> {
    let of = type_name(&it.self_ty)?;
    if let Some((implemented, _)) = &it.trait_ {
        return Some((of, BTreeSet::from([format!("impl {}", short(implemented))])));
    }
    let public = |it: &ImplItem| match it {
        ImplItem::Fn(it) if is_public(&it.vis) && is_kept(&it.attrs, cfg) => {
            Some(format!("fn {}", it.sig.ident))
        }
        _ => None,
    };
    Some((of, it.items.iter().filter_map(public).collect()))
}

/// A path without spaces and qualifiers: `fmt::Debug` is `Debug`.
fn short(path: &syn::Path) -> String {
    let mut text = path.to_token_stream().to_string().replace(' ', "");
    while let Some(end) = text.find("::") {
        let is_mark = |it: char| !(it.is_alphanumeric() || it == '_');
        let start = text[..end].rfind(is_mark).map_or(0, |at| at + 1);
        text.replace_range(start..end + 2, "");
    }
    text
}

/// All features enabled by those in `set`.
fn enabled(features: &BTreeMap<String, Vec<String>>, set: &str) -> BTreeSet<String> {
    let mut enabled = BTreeSet::new();
    let mut pending: Vec<&str> = set.split_whitespace().collect();
    while let Some(name) = pending.pop() {
        if let Some(more) = features.get(name).filter(|_| enabled.insert(name.to_owned())) {
            pending.extend(more.iter().map(String::as_str));
        }
    }
    enabled
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn surface(files: &[(&str, &str)]) -> Surface {
        surface_with(files, &Cfg::default())
    }

    fn surface_with(files: &[(&str, &str)], cfg: &Cfg) -> Surface {
        let mut surface = Surface::default();
        for (path, text) in files {
            surface.add(&module_of(Path::new(path)), &syn::parse_file(text).unwrap().items, cfg);
        }
        surface
    }

    fn check(theirs: &[(&str, &str)], ours: &[(&str, &str)], missing: &[&str]) {
        let found: Vec<_> = surface(theirs).missing_from(&surface(ours)).into_iter().collect();
        assert_eq!(found, missing, "{theirs:?} {ours:?}");
    }

    #[test]
    fn missing_names_of_public_modules_are_reported() {
        check(&[("lib.rs", "pub struct A;")], &[("lib.rs", "")], &["A"]);
        check(&[("lib.rs", "pub struct A;")], &[("lib.rs", "pub use vocabulary::A;")], &[]);
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
    fn missing_names_of_the_vocabulary_are_reported() {
        let check = |vocabulary: &[(&str, &str)], missing: &[&str]| {
            let theirs = [
                ("lib.rs", "pub mod a; pub mod b; pub use c::T;"),
                ("a.rs", "pub fn f() {} pub fn g() {}"),
                ("b.rs", "pub struct S; impl S { pub fn f() {} fn g() {} }"),
                ("c.rs", "pub struct T;"),
            ];
            // `a` is its own.
            let ours = [
                ("lib.rs", "pub mod a; pub use vocabulary::{b, T};"),
                ("a.rs", "pub use vocabulary::a::f; pub fn g() {}"),
            ];
            let found = surface(&theirs).missing_from_vocabulary(&surface(vocabulary), &surface(&ours));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), missing, "{vocabulary:?}");
        };
        let root = ("lib.rs", "pub mod a; pub mod b; pub struct T;");
        let (a, b) = (("a.rs", "pub fn f() {}"), ("b.rs", "pub struct S; impl S { pub fn f() {} }"));
        check(&[root, a, b], &[]);
        check(&[root, ("a.rs", ""), ("b.rs", "pub struct S;")], &["a::f", "b::S: fn f"]);
        check(&[("lib.rs", "pub mod a; mod b;"), a, b], &["T", "b"]);
    }

    #[test]
    fn vocabulary_has_the_features_that_a_package_enables() {
        let package = serde_json::json!({
            "features": {"a": ["b", "vocabulary/x"], "b": ["vocabulary/y", "dep:e"], "c": ["vocabulary/z"]},
            "dependencies": [{
                "name": "thalweg-core", "rename": "vocabulary", "features": ["codec"], "kind": null, "source": null,
            }],
        });
        let package: Package = serde_json::from_value(package).unwrap();
        let ours = Crate { package: &package, files: Vec::new() };
        let check = |set: &str, expected: &str| {
            assert_eq!(ours.features_of_vocabulary(&Cfg::of(&package, Some(set))), expected, "{set}");
        };
        check("", "codec");
        check("a", "codec x y");
        check("c", "codec z");
    }

    #[test]
    fn missing_members_of_types_are_reported() {
        let check = |theirs: &str, ours: &str, missing: &[&str]| {
            let theirs = format!("pub struct A; {theirs}");
            check(&[("lib.rs", &theirs)], &[("lib.rs", &format!("pub struct A; {ours}"))], missing);
            check(&[("lib.rs", &theirs)], &[("lib.rs", "pub use vocabulary::A;")], &[]);
        };
        check("impl A { pub fn f() {} fn g() {} pub(crate) fn h() {} }", "", &["A: fn f"]);
        check("impl A { pub const fn f() {} }", "impl A { pub async fn f() {} }", &[]);
        check("impl<T: Into<u8>> A<T> where T: X<u8> { pub fn f() { pub fn g() {} } }", "", &["A: fn f"]);
        check("impl Copy for A where u8: Copy {}", "", &["A: impl Copy"]);
        check("impl fmt::Debug for A { }", "impl std::fmt::Debug for A {}", &[]);
        check("impl From<http::Uri> for A {}", "impl From<Uri> for A {}", &[]);
        check("impl TryFrom<Vec<u8>> for A {}", "impl TryFrom<u8> for A {}", &["A: impl TryFrom<Vec<u8>>"]);
        check("fn f() -> impl Send { } impl B { pub fn f() {} }", "", &[]);
        check("impl From<fn(u8) -> u8> for A {}", "", &["A: impl From<fn(u8)->u8>"]);
    }

    #[test]
    fn methods_of_defined_types_are_expected_on_the_page() {
        let theirs =
            surface(&[("lib.rs", "pub struct A; impl A { pub fn f() {} fn g() {} } impl Clone for A {}")]);
        let functions = |ours: &str| theirs.expected_methods(&surface(&[("lib.rs", ours)]));
        assert_eq!(functions("pub struct A; impl A { pub fn f() {} }"), ["f".to_owned()].into());
        assert_eq!(functions("pub use vocabulary::A;"), BTreeSet::new());
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

    /// Parses lines `name: feature feature`.
    fn features(lines: &[&str]) -> BTreeMap<String, Vec<String>> {
        let lines = lines.iter().map(|line| line.split_once(':').unwrap());
        lines
            .map(|(name, on)| (name.to_owned(), on.split_whitespace().map(str::to_owned).collect()))
            .collect()
    }

    #[test]
    fn missing_features_are_reported() {
        let theirs = Surface { features: features(&["_a:", "b:"]), ..Surface::default() };
        assert_eq!(theirs.missing_from(&Surface::default()), ["feature b".to_owned()].into());
    }

    #[test]
    fn features_enable_other_features() {
        let all = features(&["a: b dep:c", "b: d/e", "f:"]);
        let check = |set: &str, on: &[&str]| {
            assert_eq!(enabled(&all, set).iter().collect::<Vec<_>>(), on, "{set}");
        };
        check("", &[]);
        check("a", &["a", "b"]);
        check("b f", &["b", "f"]);
    }

    #[test]
    fn items_of_disabled_features_are_ignored() {
        let check = |text: &str, set: &str, names: &[&str]| {
            let features = Some(set.split(' ').map(str::to_owned).collect());
            let surface = surface_with(&[("lib.rs", text)], &Cfg { features, own_vocabulary: false });
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
        check("#[cfg(own_vocabulary)] pub struct B; #[cfg(not(own_vocabulary))] pub struct C;", "", &["C"]);
        check("pub struct A { #[cfg(feature = \"a\")] pub b: u8 } pub struct C;", "", &["A", "C"]);
    }
}
