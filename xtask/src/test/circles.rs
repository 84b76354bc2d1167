//! No files of a crate import each other in a circle.
//!
//! An import is a name that one file defines and another one uses, whatever it is re-exported through; or a method that
//! an `impl` block calls on itself, and a block of the same type in another file has. A `mod x;` is
//! none, so a parent may use what its children define, as long as they use nothing that it defines. What is re-exported
//! from another crate no file of this one defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::{Block, Source, joined};
use crate::failure::Result;

/// The files of one crate, as modules.
pub(super) struct Crate {
    files: Vec<Source>,
    /// What each file's `use` declarations bring from this crate.
    uses: Vec<Vec<Use>>,
    /// Names that a `use` brings into a module from other crates.
    foreign: BTreeSet<(Vec<String>, String)>,
    /// The file of each module, inline ones too.
    modules: BTreeMap<Vec<String>, usize>,
    /// The file that defines a macro which is exported from the root.
    macros: BTreeMap<String, usize>,
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
    pub(super) fn read(root: &Path, sources: &[(PathBuf, String)]) -> Result<Self> {
        let mut files = Vec::new();
        for (path, text) in sources {
            if let Ok(inside) = path.strip_prefix(root) {
                files.push(
                    Source::read(path, inside, text).map_err(|why| failed!("{}: {why}", path.display()))?,
                );
            }
        }
        let for_tests: Vec<Vec<String>> = files
            .iter()
            .flat_map(|file| file.test_modules.clone())
            .chain([vec!["tests".to_owned()]])
            .collect();
        files.retain(|file| {
            let is_for_tests = for_tests.iter().any(|tests| file.module.starts_with(tests));
            !is_for_tests && file.module.last().is_none_or(|last| last != "tests")
        });
        let (mut modules, mut macros) = (BTreeMap::new(), BTreeMap::new());
        for (index, file) in files.iter().enumerate() {
            modules.insert(file.module.clone(), index);
            macros.extend(file.macros.iter().map(|name| (name.clone(), index)));
        }
        for (index, file) in files.iter().enumerate() {
            for inline in &file.inline {
                modules.entry(inline.clone()).or_insert(index);
            }
        }
        let mut foreign = BTreeSet::new();
        let uses = files.iter().map(|file| uses(file, &modules, &mut foreign)).collect();
        Ok(Self { files, uses, foreign, modules, macros })
    }

    pub(super) fn files(&self) -> &[Source] {
        &self.files
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
        for (from, (file, uses)) in self.files.iter().zip(&self.uses).enumerate() {
            let of_uses = uses.iter().map(|it| match it.name.as_str() {
                "*" => joined(&it.target, "*"),
                _ => it.target.clone(),
            });
            let of_paths = file.paths.iter().filter_map(|(here, path)| self.absolute(here, uses, path));
            for path in of_uses.chain(of_paths) {
                if let Some(Found::Item(to)) =
                    self.find(&path, REEXPORTS_MAX).filter(|it| *it != Found::Item(from))
                {
                    imports.entry((from, to)).or_default().insert(path.last().cloned().unwrap_or_default());
                }
            }
        }
        imports
    }

    /// Methods that one `impl` block calls on itself, and another file's block of the same type has.
    fn calls_of_methods(&self) -> Imports {
        let files = self.files.iter().enumerate();
        let blocks: Vec<(usize, usize, &Block)> = files
            .flat_map(|(index, file)| file.blocks.iter().map(move |block| (index, block)))
            .filter_map(|(index, block)| Some((index, self.owner(block)?, block)))
            .collect();
        let mut homes: BTreeMap<(usize, &str, &str), BTreeSet<usize>> = BTreeMap::new();
        for (index, owner, block) in &blocks {
            for method in &block.methods {
                homes.entry((*owner, &block.name, method)).or_default().insert(*index);
            }
        }
        let mut imports = Imports::new();
        for (index, owner, block) in &blocks {
            for method in &block.calls {
                let Some(found) = homes.get(&(*owner, &block.name, method)) else { continue };
                if let (false, Some(home)) = (found.contains(index), found.first()) {
                    imports.entry((*index, *home)).or_default().insert(format!("{}::{method}", block.name));
                }
            }
        }
        imports
    }

    /// The file that defines the type of an `impl` block.
    fn owner(&self, block: &Block) -> Option<usize> {
        match self.find(&joined(&block.here, &block.name), REEXPORTS_MAX)? {
            Found::Item(owner) => Some(owner),
            Found::Module => None,
        }
    }

    /// A path in code from the root of the crate, where it leads into it.
    fn absolute(&self, here: &[String], uses: &[Use], path: &[String]) -> Option<Vec<String>> {
        if let Some(path) = absolute(here, path, &self.modules) {
            return Some(path);
        }
        let is_it = |it: &&Use| it.name == path[0] && here.starts_with(&it.module);
        let target = &uses.iter().find(is_it)?.target;
        // What is no module was counted where it was imported.
        (self.find(target, REEXPORTS_MAX) == Some(Found::Module)).then(|| [target, &path[1..]].concat())
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
        let uses = || self.uses[index].iter().filter(|it| it.module == module);
        if let Some(it) = uses().find(|it| it.name == *name) {
            return reexported(&[&it.target[..], &rest[1..]].concat());
        }
        for glob in uses().filter(|it| it.name == "*") {
            let found = self.modules.get(&glob.target).is_some_and(|behind| {
                self.files[*behind].defined.contains(&(glob.target.clone(), name.clone()))
                    || self.uses[*behind].iter().any(|it| it.name == *name && it.module == glob.target)
            });
            if found {
                return reexported(&[&glob.target[..], rest].concat());
            }
        }
        if self.foreign.contains(&(module.to_vec(), name.clone())) {
            return None;
        }
        match self.macros.get(name) {
            Some(file) if module.is_empty() => Some(Found::Item(*file)),
            _ => Some(Found::Item(index)),
        }
    }
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

/// What the file's `use` declarations bring from this crate; names that they bring from others are `foreign`.
fn uses(
    file: &Source,
    modules: &BTreeMap<Vec<String>, usize>,
    foreign: &mut BTreeSet<(Vec<String>, String)>,
) -> Vec<Use> {
    let target = |here: &Vec<String>, path: &Vec<String>| {
        absolute(here, path, modules).or_else(|| {
            // `use crate::frame; use frame::Kind;`
            let (.., first) =
                file.leaves.iter().find(|(module, name, _)| module == here && *name == path[0])?;
            let first = absolute(here, Some(first).filter(|first| *first != path)?, modules)?;
            Some([&first[..], &path[1..]].concat())
        })
    };
    let mut own = Vec::new();
    for (here, name, path) in &file.leaves {
        match target(here, path) {
            Some(target) => own.push(Use { module: here.clone(), name: name.clone(), target }),
            None => drop(foreign.insert((here.clone(), name.clone()))),
        }
    }
    own
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
        let read = Crate::read(Path::new("src"), &sources).unwrap();
        assert_eq!(read.circles(&[]), circles, "{files:?}");
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
