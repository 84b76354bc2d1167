//! Finds import cycles between the files of a crate.
//!
//! An import is a name that one file defines and another uses, through any re-exports. A method also counts if an
//! `impl` block calls it on `self` and a block of the same type in another file defines it. A `mod x;` does not count:
//! a parent may use its children's items as long as they use none of its own. Re-exports from other crates belong to no
//! file of this one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::slice;

use super::source::{Block, Source, joined};
use crate::failure::Result;

/// The files of one crate, as modules.
#[derive(Default)]
pub(super) struct Crate {
    files: Vec<Source>,
    /// The file of each module, including inline modules.
    modules: BTreeMap<Vec<String>, usize>,
    /// The file that defines an item, by the item's path. Exported macros belong to the root.
    defined: BTreeMap<Vec<String>, usize>,
    /// The path, as written, that a `use` imports into a module under a name.
    used: BTreeMap<Vec<String>, Vec<String>>,
    /// Paths that a module imports with `*`.
    globs: BTreeMap<Vec<String>, Vec<Vec<String>>>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathTarget {
    Module,
    /// An item defined in this file.
    Item(usize),
    /// An unknown name in a module of this file: a macro may define it.
    Unknown(usize),
    /// Another crate.
    OtherCrate,
}

/// The names imported, by importing and imported file.
type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Limit of re-exports followed.
const REEXPORTS_MAX: usize = 8;

impl Crate {
    /// Reads the crate whose root file is in the folder `root`, from its files' paths and texts. Test-only code is left
    /// out.
    pub(super) fn read(root: &Path, sources: &[(PathBuf, String)]) -> Result<Self> {
        let mut files = Vec::new();
        for (path, text) in sources {
            if let Ok(inside) = path.strip_prefix(root) {
                files.push(
                    Source::read(path, inside, text).map_err(|why| failed!("{}: {why}", path.display()))?,
                );
            }
        }
        let test_modules: Vec<Vec<String>> = files
            .iter()
            .flat_map(|file| file.test_modules.clone())
            .chain([vec!["tests".to_owned()]])
            .collect();
        files.retain(|file| {
            let is_test_module = test_modules.iter().any(|tests| file.module.starts_with(tests));
            !is_test_module && file.module.last().is_none_or(|last| last != "tests")
        });
        let mut of = Self { files, ..Self::default() };
        for (index, file) in of.files.iter().enumerate() {
            of.modules.insert(file.module.clone(), index);
            of.defined.extend(file.defined.iter().map(|(here, name)| (joined(here, name), index)));
        }
        for (index, file) in of.files.iter().enumerate() {
            for inline in &file.inline {
                of.modules.entry(inline.clone()).or_insert(index);
            }
            for (here, name, path) in &file.imported_names {
                if name == "*" {
                    of.globs.entry(here.clone()).or_default().push(path.clone());
                } else {
                    of.used.entry(joined(here, name)).or_insert_with(|| path.clone());
                }
            }
            for name in &file.macros {
                of.defined.entry(vec![name.clone()]).or_insert(index);
            }
        }
        Ok(of)
    }

    pub(super) fn files(&self) -> &[Source] {
        &self.files
    }

    /// Returns the cycles, each as lines: `a.rs -> b.rs: Name, other`. Methods of `excluded_types` do not count.
    pub(super) fn cycles(&self, excluded_types: &[&str]) -> Vec<Vec<String>> {
        let mut imports = self.imports();
        let is_excluded =
            |name: &str| name.split_once("::").is_some_and(|(of, _)| excluded_types.contains(&of));
        for names in imports.values_mut() {
            names.retain(|name| !is_excluded(name));
        }
        imports.retain(|_, names| !names.is_empty());
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| reach(file, &imports)).collect();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for file in 0..self.files.len() {
            let cycle: BTreeSet<usize> =
                reached[file].iter().copied().filter(|other| reached[*other].contains(&file)).collect();
            if cycle.is_empty() || !seen.insert(cycle.clone()) {
                continue;
            }
            let edges = imports.iter().filter(|((from, to), _)| cycle.contains(from) && cycle.contains(to));
            let line = |((from, to), names): (&(usize, usize), &BTreeSet<String>)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let [from, to] = [from, to].map(|file| self.files[*file].path.display());
                format!("{from} -> {to}: {}", names.join(", "))
            };
            cycles.push(edges.map(line).collect());
        }
        cycles
    }

    /// Returns importing file, imported file, and the imported names.
    pub(super) fn imports_by_path(&self) -> impl Iterator<Item = (&Path, &Path, String)> {
        self.imports().into_iter().map(|((from, to), names)| {
            let [from, to] = [from, to].map(|file| self.files[file].path.as_path());
            (from, to, names.into_iter().collect::<Vec<_>>().join(", "))
        })
    }

    /// Returns the names that files use from each other, and the calls between `impl` blocks of a type in several
    /// files.
    fn imports(&self) -> Imports {
        let mut imports = self.method_calls();
        for (from, file) in self.files.iter().enumerate() {
            let use_paths = file.imported_names.iter().map(|(here, name, path)| match name.as_str() {
                "*" => (here, joined(path, "*")),
                _ => (here, path.clone()),
            });
            // A path that begins with an item was counted where the item was imported.
            let other_paths = file.paths.iter().filter(|(here, path)| {
                let used = self.used.get(&joined(here, &path[0]));
                self.find(here, used.map_or(&path[..1], Vec::as_slice)) == PathTarget::Module
            });
            for (here, path) in use_paths.chain(other_paths.map(|(here, path)| (here, path.clone()))) {
                if let PathTarget::Item(to) | PathTarget::Unknown(to) = self.find(here, &path)
                    && to != from
                {
                    imports.entry((from, to)).or_default().extend(path.last().cloned());
                }
            }
        }
        imports
    }

    /// Methods that an `impl` block calls on `self` and that a block of the same type in another file defines.
    fn method_calls(&self) -> Imports {
        let files = self.files.iter().enumerate();
        let blocks: Vec<(usize, usize, &Block)> = files
            .flat_map(|(index, file)| file.blocks.iter().map(move |block| (index, block)))
            .filter_map(|(index, block)| Some((index, self.defining_file(block)?, block)))
            .collect();
        let mut definitions: BTreeMap<(usize, &str, &str), BTreeSet<usize>> = BTreeMap::new();
        for (index, defining_file, block) in &blocks {
            for method in &block.methods {
                definitions.entry((*defining_file, &block.name, method)).or_default().insert(*index);
            }
        }
        let mut imports = Imports::new();
        for (index, defining_file, block) in &blocks {
            for method in &block.calls {
                let Some(found) = definitions.get(&(*defining_file, &block.name, method)) else { continue };
                if let (false, Some(definition)) = (found.contains(index), found.first()) {
                    imports
                        .entry((*index, *definition))
                        .or_default()
                        .insert(format!("{}::{method}", block.name));
                }
            }
        }
        imports
    }

    /// The file that defines the type of an `impl` block.
    fn defining_file(&self, block: &Block) -> Option<usize> {
        let path = [&["crate".to_owned()][..], &block.here, slice::from_ref(&block.name)].concat();
        match self.find(&[], &path) {
            PathTarget::Item(defining_file) | PathTarget::Unknown(defining_file) => Some(defining_file),
            PathTarget::Module | PathTarget::OtherCrate => None,
        }
    }

    /// Resolves a path written in the module `here`.
    fn find(&self, here: &[String], path: &[String]) -> PathTarget {
        self.follow(here, path, REEXPORTS_MAX)
    }

    fn follow(&self, here: &[String], path: &[String], reexports_left: usize) -> PathTarget {
        let Some(left) = reexports_left.checked_sub(1) else { return PathTarget::OtherCrate };
        let first = joined(here, &path[0]);
        let is_local = self.modules.contains_key(&first)
            || self.defined.contains_key(&first)
            || self.used.contains_key(&first);
        let mut module = if path[0] == "crate" { Vec::new() } else { here.to_vec() };
        if !is_local && !["crate", "self", "super"].contains(&path[0].as_str()) {
            return PathTarget::OtherCrate;
        }
        for (index, name) in path.iter().enumerate() {
            let child = joined(&module, name);
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(module.pop()),
                "*" => {
                    return self
                        .modules
                        .get(&module)
                        .map_or(PathTarget::OtherCrate, |file| PathTarget::Item(*file));
                }
                _ if self.modules.contains_key(&child) => module = child,
                _ => {
                    let rest = &path[index + 1..];
                    return match (self.defined.get(&child), self.used.get(&child)) {
                        // A function may have the name of an imported module.
                        (Some(file), used) if rest.is_empty() || used.is_none() => PathTarget::Item(*file),
                        (_, Some(used)) => self.follow(&module, &[&used[..], rest].concat(), left),
                        (_, None) => self.follow_globs(&module, &path[index..], left),
                    };
                }
            }
        }
        PathTarget::Module
    }

    /// Resolves a path that a `*` may import into `module`.
    fn follow_globs(&self, module: &[String], path: &[String], reexports_left: usize) -> PathTarget {
        let globs = self.globs.get(module).into_iter().flatten();
        let modules = globs.filter(|glob| self.follow(module, glob, reexports_left) == PathTarget::Module);
        let mut candidates =
            modules.map(|glob| self.follow(module, &[&glob[..], path].concat(), reexports_left));
        let unknown =
            || self.modules.get(module).map_or(PathTarget::OtherCrate, |file| PathTarget::Unknown(*file));
        candidates
            .find(|found| matches!(found, PathTarget::Item(_) | PathTarget::Module))
            .unwrap_or_else(unknown)
    }
}

/// All files that `start` imports, directly or not; includes `start` only if it is in a cycle.
fn reach(start: usize, imports: &Imports) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![start];
    while let Some(file) = pending.pop() {
        let next = imports.range((file, 0)..(file + 1, 0)).map(|((_, to), _)| *to);
        pending.extend(next.filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::Crate;

    /// Checks the lines of all cycles among `files`, each given as path and text.
    fn check(files: &[(&str, &str)], cycles: &[&[&str]]) {
        let sources: Vec<(PathBuf, String)> =
            files.iter().map(|(path, text)| (Path::new("src").join(path), (*text).to_owned())).collect();
        let read = Crate::read(Path::new("src"), &sources).unwrap();
        assert_eq!(read.cycles(&[]), cycles, "{files:?}");
    }

    #[test]
    fn mutual_imports_of_siblings_are_a_cycle() {
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
    fn mutual_imports_of_parent_and_child_are_a_cycle() {
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
    fn re_exports_of_other_crates_belong_to_no_file() {
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
    fn paths_in_macros_belong_to_callers() {
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
    fn method_calls_between_impl_blocks_are_imports() {
        let a = "mod b; pub struct A; impl A { fn f(&self) { self.g() } fn h(&self) {} }";
        let cycle: &[&str] = &["src/a.rs -> src/a/b.rs: A::g", "src/a/b.rs -> src/a.rs: A"];
        check(&[("a.rs", a), ("a/b.rs", "use super::A; impl A { pub fn g(&self) {} }")], &[cycle]);
        check(
            &[("a.rs", a), ("a/b.rs", "use super::A; impl<T: B<u8>> C<T> for A where T: D { fn g() {} }")],
            &[cycle],
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
    fn test_code_is_ignored() {
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
