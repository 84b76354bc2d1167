//! No files of a crate import each other in a circle.
//!
//! An import is a name that one file defines and another one uses, whatever it is re-exported through; or a method that
//! an `impl` block calls on itself, and a block of the same type in another file has. A `mod x;` is
//! none, so a parent may use what its children define, as long as they use nothing that it defines. What is re-exported
//! from another crate no file of this one defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::tokens::{self, Token, Tokens, module_of};

/// The files of one crate, as modules.
pub(super) struct Crate {
    files: Vec<File>,
    /// The file of each module, inline ones too.
    modules: BTreeMap<Vec<String>, usize>,
    /// The file that defines a macro which is exported from the root.
    macros: BTreeMap<String, usize>,
}

struct File {
    path: PathBuf,
    module: Vec<String>,
    tokens: Vec<Token>,
    uses: Vec<Use>,
    /// Names that a `use` brings into a module from other crates.
    foreign: BTreeSet<(Vec<String>, String)>,
    /// What it defines outside of functions and impls: the module and the name.
    defined: BTreeSet<(Vec<String>, String)>,
}

/// One name that a `use` brings into a module, or all of another module's (`*`).
#[derive(Debug)]
struct Use {
    module: Vec<String>,
    name: String,
    /// From the root of the crate.
    target: Vec<String>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Module,
    /// Something that this file defines.
    Item(usize),
}

/// By importing and imported file: the names that tie them.
type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// How many re-exports are followed.
const REEXPORTS_MAX: usize = 8;

impl Crate {
    /// The crate whose root file lies in the folder `root`, of its files' paths and texts. What is for tests alone is
    /// left out.
    pub(super) fn read(root: &Path, sources: &[(PathBuf, String)]) -> Self {
        let read: Vec<(PathBuf, Vec<String>, Tokens)> = sources
            .iter()
            .filter_map(|(path, text)| {
                let module = module_of(path.strip_prefix(root).ok()?);
                Some((path.clone(), module, tokens::read(text)))
            })
            .collect();
        let for_tests: Vec<Vec<String>> = read
            .iter()
            .flat_map(|(_, module, tokens)| tokens.test_modules.iter().map(|name| joined(module, name)))
            .chain([vec!["tests".to_owned()]])
            .collect();
        let is_for_tests = |module: &[String]| {
            module.last().is_some_and(|last| last == "tests")
                || for_tests.iter().any(|tests| module.starts_with(tests))
        };
        let mut files: Vec<File> = read
            .into_iter()
            .filter(|(_, module, _)| !is_for_tests(module))
            .map(|(path, module, tokens)| File {
                defined: definitions(&module, &tokens.kept),
                tokens: tokens.kept,
                uses: Vec::new(),
                foreign: BTreeSet::new(),
                path,
                module,
            })
            .collect();
        let mut modules = BTreeMap::new();
        let mut macros = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            modules.insert(file.module.clone(), index);
            for token in &file.tokens {
                if !token.inline.is_empty() {
                    modules.entry([&file.module[..], &token.inline[..]].concat()).or_insert(index);
                }
            }
            for three in file.tokens.windows(3) {
                if three[0].text == "macro_rules" {
                    macros.insert(three[2].text.clone(), index);
                }
            }
        }
        for file in &mut files {
            (file.uses, file.foreign) = uses(file, &modules);
        }
        Self { files, modules, macros }
    }

    /// The circles, each as lines: `a.rs -> b.rs: Name, other`. Methods of the types `passed_over` tie no files.
    pub(super) fn circles(&self, passed_over: &[&str]) -> Vec<Vec<String>> {
        let mut imports = self.imports();
        let is_passed_over =
            |name: &str| name.split_once("::").is_some_and(|(of, _)| passed_over.contains(&of));
        for names in imports.values_mut() {
            names.retain(|name| !is_passed_over(name));
        }
        imports.retain(|_, names| !names.is_empty());
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| reach(file, &imports)).collect();
        let mut told = BTreeSet::new();
        let mut circles = Vec::new();
        for file in 0..self.files.len() {
            let circle: BTreeSet<usize> =
                reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
            if circle.is_empty() || !told.insert(circle.clone()) {
                continue;
            }
            let within =
                imports.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
            let line = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let [from, to] = [from, to].map(|file| self.files[*file].path.display());
                format!("{from} -> {to}: {}", names.join(", "))
            };
            circles.push(within.map(line).collect());
        }
        circles
    }

    /// The importing and the imported file, with the names that tie them.
    pub(super) fn imports_by_path(&self) -> impl Iterator<Item = (&Path, &Path, String)> {
        self.imports().into_iter().map(|((from, to), names)| {
            let [from, to] = [from, to].map(|file| self.files[file].path.as_path());
            (from, to, names.into_iter().collect::<Vec<_>>().join(", "))
        })
    }

    /// What ties the files: names that one uses of another, and methods of a type whose `impl` blocks lie in several.
    fn imports(&self) -> Imports {
        let mut imports = self.calls_of_methods();
        for (from, file) in self.files.iter().enumerate() {
            let mut add = |path: &[String]| {
                let Some(Found::Item(to)) = self.find(path, REEXPORTS_MAX) else { return };
                if to != from {
                    imports.entry((from, to)).or_default().insert(path.last().cloned().unwrap_or_default());
                }
            };
            for r#use in &file.uses {
                if r#use.name == "*" {
                    add(&joined(&r#use.target, "*"));
                } else {
                    add(&r#use.target);
                }
            }
            for path in self.paths(file) {
                add(&path);
            }
        }
        imports
    }

    /// Methods that one `impl` block calls on itself, and another file's block of the same type has.
    fn calls_of_methods(&self) -> Imports {
        let blocks: Vec<(usize, Block<'_>)> = self
            .files
            .iter()
            .enumerate()
            .flat_map(|(index, file)| blocks(&file.tokens).into_iter().map(move |block| (index, block)))
            .collect();
        let mut homes: BTreeMap<(usize, &str, &str), BTreeSet<usize>> = BTreeMap::new();
        for (index, block) in &blocks {
            let Some(owner) = self.owner(*index, block) else { continue };
            for three in block.tokens.windows(2) {
                if three[0].text == "fn" && three[0].depth == block.depth + 1 {
                    homes.entry((owner, block.name, &three[1].text)).or_default().insert(*index);
                }
            }
        }
        let mut imports = Imports::new();
        for (index, block) in &blocks {
            let Some(owner) = self.owner(*index, block) else { continue };
            for four in block.tokens.windows(4) {
                let [own, dot, method, call] =
                    [&four[0], &four[1], &four[2], &four[3]].map(|it| it.text.as_str());
                let is_call =
                    matches!((own, dot, call), ("self", ".", "(" | "::") | ("Self", "::", "(" | "::"));
                let Some(found) = homes.get(&(owner, block.name, method)).filter(|_| is_call) else {
                    continue;
                };
                if let (false, Some(home)) = (found.contains(index), found.first()) {
                    imports.entry((*index, *home)).or_default().insert(format!("{}::{method}", block.name));
                }
            }
        }
        imports
    }

    /// The file that defines the type of an `impl` block.
    fn owner(&self, index: usize, block: &Block<'_>) -> Option<usize> {
        let file = &self.files[index];
        let here = [&file.module[..], &block.tokens.first()?.inline[..]].concat();
        match self.find(&joined(&here, block.name), REEXPORTS_MAX)? {
            Found::Item(owner) => Some(owner),
            Found::Module => None,
        }
    }

    /// Paths in code, `use` aside, that lead into the crate.
    fn paths(&self, file: &File) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        let tokens = &file.tokens;
        let mut position = 0;
        while position < tokens.len() {
            if is_use(tokens, position) {
                position += tokens[position..].iter().take_while(|token| token.text != ";").count();
                continue;
            }
            // A macro's `$crate::a` is for those who call it from another crate.
            let continues = position > 0 && matches!(tokens[position - 1].text.as_str(), "::" | "." | "$");
            let segments = if continues { Vec::new() } else { segments(tokens, position) };
            if segments.len() > 1 {
                let here = [&file.module[..], &tokens[position].inline[..]].concat();
                paths.extend(self.absolute(&here, file, &segments));
            }
            position += (2 * segments.len()).saturating_sub(1).max(1);
        }
        paths
    }

    fn absolute(&self, here: &[String], file: &File, segments: &[String]) -> Option<Vec<String>> {
        let imported = |name: &str| {
            let is_it = |r#use: &&Use| r#use.name == name && here.starts_with(&r#use.module);
            file.uses.iter().find(is_it).map(|r#use| r#use.target.clone())
        };
        if let Some(path) = absolute(here, segments, &self.modules) {
            return Some(path);
        }
        let target = imported(&segments[0])?;
        // What is no module was counted where it was imported.
        (self.find(&target, REEXPORTS_MAX) == Some(Found::Module))
            .then(|| [&target[..], &segments[1..]].concat())
    }

    /// Which file defines what `path` names, through re-exports.
    fn find(&self, path: &[String], reexports_left: usize) -> Option<Found> {
        let len = (0..=path.len()).rev().find(|len| self.modules.contains_key(&path[..*len]))?;
        let (module, rest) = path.split_at(len);
        let index = self.modules[module];
        let Some(name) = rest.first() else { return Some(Found::Module) };
        let file = &self.files[index];
        if name == "*" || reexports_left == 0 || file.defined.contains(&(module.to_vec(), name.clone())) {
            return Some(Found::Item(index));
        }
        let reexported = |target: &[String]| self.find(target, reexports_left - 1);
        let uses = || file.uses.iter().filter(|r#use| r#use.module == module);
        if let Some(r#use) = uses().find(|r#use| r#use.name == *name) {
            return reexported(&[&r#use.target[..], &rest[1..]].concat());
        }
        for glob in uses().filter(|r#use| r#use.name == "*") {
            let found = self.modules.get(&glob.target).is_some_and(|behind| {
                let behind = &self.files[*behind];
                behind.defined.contains(&(glob.target.clone(), name.clone()))
                    || behind.uses.iter().any(|r#use| r#use.name == *name && r#use.module == glob.target)
            });
            if found {
                return reexported(&[&glob.target[..], rest].concat());
            }
        }
        if file.foreign.contains(&(module.to_vec(), name.clone())) {
            return None;
        }
        match self.macros.get(name) {
            Some(file) if module.is_empty() => Some(Found::Item(*file)),
            _ => Some(Found::Item(index)),
        }
    }
}

/// An `impl` block outside of functions.
struct Block<'t> {
    /// The type, without its path and its parameters.
    name: &'t str,
    depth: usize,
    tokens: &'t [Token],
}

fn blocks(tokens: &[Token]) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        let Some(offset) = tokens[position..].iter().position(|it| it.text == "impl" && it.depth == 0) else {
            break;
        };
        let start = position + offset;
        let open = tokens[start..].iter().position(|it| matches!(it.text.as_str(), "{" | ";"));
        let Some(open) = open.map(|offset| start + offset) else { break };
        position = open + 1;
        let depth = tokens[start].depth;
        let end = tokens[position..].iter().position(|it| it.text == "}" && it.depth <= depth);
        let end = end.map_or(tokens.len(), |offset| position + offset);
        if let Some(name) = implemented(&tokens[start + 1..open]) {
            found.push(Block { name, depth, tokens: &tokens[position..end] });
            position = end;
        }
    }
    found
}

/// The type in the head of an `impl`: `Type` in `<T: A<B>> fmt::Debug for path::Type<T> where …`.
fn implemented(head: &[Token]) -> Option<&str> {
    let mut angles = 0_usize;
    let mut name = None;
    for (at, token) in head.iter().enumerate() {
        match token.text.as_str() {
            "<" => angles += 1,
            ">" if head[at - 1].text != "-" => angles = angles.saturating_sub(1),
            "where" => break,
            "for" if angles == 0 => name = None,
            word if angles == 0 && word.starts_with(char::is_alphabetic) => name = Some(word),
            _ => {}
        }
    }
    name
}

fn joined(module: &[String], name: &str) -> Vec<String> {
    [module, &[name.to_owned()]].concat()
}

/// All files that `start` imports, directly or not; itself only if it is in a circle.
fn reach(start: usize, imports: &Imports) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(file) = waiting.pop() {
        let next = imports.range((file, 0)..(file + 1, 0)).map(|((_, to), _)| *to);
        waiting.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

const DEFINING: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mod", "macro_rules"];

/// Names behind `fn`, `struct` and so on, where they stand in a module and not in a function or an impl.
fn definitions(module: &[String], tokens: &[Token]) -> BTreeSet<(Vec<String>, String)> {
    let mut defined = BTreeSet::new();
    for two in tokens.windows(2) {
        let [keyword, name] = two else { continue };
        if keyword.depth == 0 && DEFINING.contains(&keyword.text.as_str()) {
            defined.insert(([module, &keyword.inline[..]].concat(), name.text.clone()));
        }
    }
    defined
}

/// Whether a `use` declaration begins here, and not a word in a bound such as `impl Trait + use<'a>`.
fn is_use(tokens: &[Token], position: usize) -> bool {
    tokens[position].text == "use" && tokens.get(position + 1).is_some_and(|next| next.text != "<")
}

/// What the file's `use` declarations bring from this crate, and names that they bring from others.
fn uses(file: &File, modules: &BTreeMap<Vec<String>, usize>) -> (Vec<Use>, BTreeSet<(Vec<String>, String)>) {
    let mut leaves = Vec::new();
    for position in 0..file.tokens.len() {
        if is_use(&file.tokens, position) {
            let here = [&file.module[..], &file.tokens[position].inline[..]].concat();
            let mut found = Vec::new();
            leaf(&file.tokens, position + 1, &[], &mut found);
            leaves.extend(found.into_iter().map(|(name, path)| (here.clone(), name, path)));
        }
    }
    let direct = |(here, name, path): &(Vec<String>, String, Vec<String>)| {
        let target = absolute(here, path, modules).or_else(|| {
            // `use crate::frame; use frame::Kind;`
            let (_, _, first) = leaves.iter().find(|(module, name, _)| module == here && *name == path[0])?;
            (first != path)
                .then(|| absolute(here, first, modules))
                .flatten()
                .map(|first| [&first[..], &path[1..]].concat())
        })?;
        Some(Use { module: here.clone(), name: name.clone(), target })
    };
    let mut own = Vec::new();
    let mut foreign = BTreeSet::new();
    for leaf in &leaves {
        match direct(leaf) {
            Some(r#use) => own.push(r#use),
            None => {
                foreign.insert((leaf.0.clone(), leaf.1.clone()));
            }
        }
    }
    (own, foreign)
}

/// Reads one tree of a `use` from `position` on; gives the position behind it.
pub(super) fn leaf(
    tokens: &[Token],
    mut position: usize,
    prefix: &[String],
    found: &mut Vec<(String, Vec<String>)>,
) -> usize {
    let text = |position: usize| tokens.get(position).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    loop {
        match text(position) {
            "{" => {
                position += 1;
                while !matches!(text(position), "}" | "") {
                    // One further for the comma, and for whatever else does not belong here.
                    let end = leaf(tokens, position, &path, found);
                    position = if text(end) == "}" { end } else { end + 1 };
                }
                return position + 1;
            }
            "*" => {
                found.push(("*".to_owned(), path));
                return position + 1;
            }
            "::" => position += 1,
            "self" if !prefix.is_empty() => position += 1,
            "as" => {
                found.push((text(position + 1).to_owned(), path));
                return position + 2;
            }
            "" | ";" | "," | "}" => {
                if let Some(name) = path.last() {
                    found.push((name.clone(), path.clone()));
                }
                return position;
            }
            word => {
                path.push(word.to_owned());
                position += 1;
            }
        }
    }
}

/// `a::b::c` from `position` on.
fn segments(tokens: &[Token], mut position: usize) -> Vec<String> {
    let is_name =
        |token: &&Token| token.text.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let mut segments = Vec::new();
    while let Some(token) = tokens.get(position).filter(is_name) {
        segments.push(token.text.clone());
        match tokens.get(position + 1) {
            Some(next) if next.text == "::" => position += 2,
            _ => break,
        }
    }
    segments
}

/// A path from the root of the crate, of one that is written in the module `here`; `None` when it leads elsewhere.
fn absolute(here: &[String], path: &[String], modules: &BTreeMap<Vec<String>, usize>) -> Option<Vec<String>> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" => here.to_vec(),
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        child => {
            let module = joined(here, child);
            return modules.contains_key(&module).then(|| [here, path].concat());
        }
    };
    let mut rest = &path[1..];
    while rest.first().is_some_and(|word| word == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Crate;

    /// The lines of all circles among `files`, each given as `path: text`.
    fn check(files: &[(&str, &str)], circles: &[&[&str]]) {
        let sources: Vec<(PathBuf, String)> =
            files.iter().map(|(path, text)| (Path::new("src").join(path), (*text).to_owned())).collect();
        assert_eq!(Crate::read(Path::new("src"), &sources).circles(&[]), circles, "{files:?}");
    }

    #[test]
    fn siblings_that_import_each_other_are_a_circle() {
        check(
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "use crate::b::{self, B}; pub struct A;"),
                ("b.rs", "use super::a; pub struct B; fn f(a: a::A) {}"),
            ],
            &[&["src/a.rs -> src/b.rs: B", "src/b.rs -> src/a.rs: A"]],
        );
        check(
            &[
                ("a.rs", "fn f() { crate::b::g() }"),
                ("b.rs", "use crate::c::C; fn g() {}"),
                ("c.rs", "use super::a::f; struct C;"),
            ],
            &[&["src/a.rs -> src/b.rs: g", "src/b.rs -> src/c.rs: C", "src/c.rs -> src/a.rs: f"]],
        );
    }

    #[test]
    fn a_child_that_imports_from_a_parent_which_uses_it_is_a_circle() {
        check(
            &[("a.rs", "mod b; struct A; fn f() { b::g() }"), ("a/b.rs", "use super::A; fn g() {}")],
            &[&["src/a.rs -> src/a/b.rs: g", "src/a/b.rs -> src/a.rs: A"]],
        );
        check(&[("a.rs", "mod b; struct A;"), ("a/b.rs", "use super::A;")], &[]);
        check(
            &[
                ("a.rs", "mod b; mod c; use b::g; fn f() { c::h() }"),
                ("a/b.rs", "use super::c::h; fn g() {}"),
                ("a/c.rs", "fn h() {}"),
            ],
            &[],
        );
    }

    #[test]
    fn what_comes_from_another_crate_is_nobodys_here() {
        let root = "mod a; pub use a::A; pub use other::{b, c::C};";
        check(&[("lib.rs", root), ("a.rs", "use crate::{C, b::B}; struct A; fn f() { crate::b::g() }")], &[]);
        check(
            &[("lib.rs", root), ("a.rs", "use crate::b::B; use crate::D; struct A;")],
            &[&["src/lib.rs -> src/a.rs: A", "src/a.rs -> src/lib.rs: D"]],
        );
    }

    #[test]
    fn re_exports_are_followed() {
        check(
            &[
                ("lib.rs", "pub mod a; pub use a::{A, B};"),
                ("a.rs", "mod b; mod c; pub use b::B; pub use self::c::*; pub struct A;"),
                ("a/b.rs", "use crate::a::C; pub struct B;"),
                ("a/c.rs", "pub struct C;"),
            ],
            &[],
        );
        check(
            &[
                ("a.rs", "mod b; pub use b::B; pub struct A;"),
                ("a/b.rs", "use crate::A; pub struct B;"),
                ("lib.rs", "pub use a::A; mod a;"),
            ],
            &[&["src/a.rs -> src/a/b.rs: B", "src/a/b.rs -> src/a.rs: A"]],
        );
    }

    #[test]
    fn paths_of_a_macro_are_its_callers() {
        let lib = "mod a; pub use a::A;";
        check(
            &[("lib.rs", lib), ("a.rs", "pub struct A; macro_rules! m { () => { $crate::A::new() } }")],
            &[],
        );
        check(
            &[
                ("lib.rs", "mod a; pub use a::A; pub fn f() {}"),
                ("a.rs", "pub struct A; fn g() { crate::f() }"),
            ],
            &[&["src/lib.rs -> src/a.rs: A", "src/a.rs -> src/lib.rs: f"]],
        );
    }

    #[test]
    fn methods_of_a_type_tie_the_files_of_its_impl_blocks() {
        let a = "mod b; pub struct A; impl A { fn f(&self) { self.g() } fn h(&self) {} }";
        let circle: &[&str] = &["src/a.rs -> src/a/b.rs: A::g", "src/a/b.rs -> src/a.rs: A"];
        check(&[("a.rs", a), ("a/b.rs", "use super::A; impl A { pub fn g(&self) {} }")], &[circle]);
        check(
            &[("a.rs", a), ("a/b.rs", "use super::A; impl<T: B<u8>> C<T> for A where T: D { fn g() {} }")],
            &[circle],
        );
        check(&[("a.rs", a), ("a/b.rs", "use super::A; struct B; impl B { pub fn g(&self) {} }")], &[]);
        check(
            &[
                ("a.rs", "mod b; mod c; pub struct A;"),
                ("a/b.rs", "use super::A; impl A { fn f() { Self::g() } }"),
                ("a/c.rs", "use super::A; impl A { fn g() { if true { self.f() } } }"),
            ],
            &[&["src/a/b.rs -> src/a/c.rs: A::g", "src/a/c.rs -> src/a/b.rs: A::f"]],
        );
    }

    #[test]
    fn tests_are_left_out() {
        check(
            &[
                (
                    "a.rs",
                    "pub struct A; mod tests { use crate::b::B; }\n\
                     #[cfg(test)] use crate::b::{B, C}; #[cfg(test)] fn f() { crate::b::B }",
                ),
                ("b.rs", "use crate::a::A; #[cfg(test)] mod model;"),
                ("b/model.rs", "use crate::b::B;"),
                ("a/tests.rs", "use crate::b::B;"),
            ],
            &[],
        );
    }
}
