//! Loads files with all that they import, and links each after its imports.

mod declare;
mod lookup;
mod numbers;
mod resolve;

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;

use super::builtin;
use super::error::{Diagnostic, Position};
use super::locations::Locations;
use super::pool::{File, FileId, ImportKind, NodeId, Pool};
use super::tree::{SourceFile, SourceTree};
use super::{encode, options, parse, validate};

pub(super) use lookup::Wanted;

/// The file with the options of all declarations.
pub(super) const DESCRIPTOR: &str = "google/protobuf/descriptor.proto";

/// The largest file that is read: 16 MiB. The largest one of googleapis has less than 2 MiB.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Files at most of one compilation. All of googleapis are 7,000.
const FILES_MAX: usize = 200_000;

pub(super) struct Linker<'t> {
    pub(super) pool: Pool,
    root: NodeId,
    tree: &'t dyn SourceTree,
    /// By the names in imports.
    states: HashMap<Rc<str>, State>,
    identities: HashMap<String, FileId>,
    /// `descriptor.proto`, there whether it is imported or not.
    pub(super) descriptor: FileId,
    is_descriptor_imported: bool,
    /// The files to compile, without what these import.
    given: HashSet<Rc<str>>,
    with_source_info: bool,
}

#[derive(Clone)]
enum State {
    Found(FileId),
    /// With the reason.
    NotFound(Rc<str>),
}

/// A file that is being loaded.
struct Frame {
    file: FileId,
    next_import: usize,
}

/// The file that is being linked, and what it can see.
pub(super) struct Scope {
    pub(super) file: FileId,
    /// Its imports, and what these import publicly.
    pub(super) imports: HashSet<FileId>,
    /// The same of option imports, of which extensions are visible only.
    pub(super) option_imports: HashSet<FileId>,
    pub(super) packages: HashSet<NodeId>,
    pub(super) package: NodeId,
    pub(super) root: NodeId,
    /// The imports of which something was used.
    pub(super) used: HashSet<FileId>,
    /// Fields of this file by message and number.
    numbers: numbers::Numbers,
}

impl<'t> Linker<'t> {
    pub(super) fn new(tree: &'t dyn SourceTree, with_source_info: bool) -> Self {
        let mut pool = Pool::default();
        let root = pool.root();
        let placeholder = pool.add_file(File::default());
        let states = HashMap::new();
        let identities = HashMap::new();
        let mut linker = Linker {
            pool,
            root,
            tree,
            states,
            identities,
            descriptor: placeholder,
            is_descriptor_imported: false,
            given: HashSet::new(),
            with_source_info,
        };
        // It needs no other file, and the options of all files need it.
        linker.load(DESCRIPTOR);
        linker
    }

    /// Loads files with all that they import. Errors are in the pool.
    pub(super) fn load_all(&mut self, names: &[&str]) -> Vec<FileId> {
        self.given = names.iter().map(|&name| name.into()).collect();
        names.iter().filter_map(|name| self.load(name)).collect()
    }

    pub(super) fn is_given(&self, file: FileId) -> bool {
        self.given.contains(&self.pool[file].name)
    }

    /// Loads a file and all that it imports. `None` if it is not there; errors are in the pool.
    fn load(&mut self, name: &str) -> Option<FileId> {
        let mut stack = Vec::new();
        if self.state(name).is_none() {
            self.start(&name.into(), &mut stack);
        }
        while let Some(frame) = stack.last_mut() {
            let file = frame.file;
            let index = frame.next_import;
            let Some(import) = self.pool[file].imports.get(index) else {
                stack.pop();
                self.finish(file);
                continue;
            };
            let name = import.name.clone();
            match self.state(&name) {
                None => {
                    self.start(&name, &mut stack);
                    continue;
                }
                Some(State::Found(imported)) if self.pool[imported].is_done => {
                    self.pool[file].imports[index].file = Some(imported);
                    if self.pool[imported].failed {
                        // Its own error is the one to report.
                        self.pool[file].failed = true;
                    }
                }
                // Said when the other imports are there: their own errors come first.
                Some(State::NotFound(_)) => {}
                Some(State::Found(imported)) => self.recursive_import(&stack, imported, &name),
            }
            if let Some(frame) = stack.last_mut() {
                frame.next_import += 1;
            }
        }
        match self.state(name) {
            Some(State::Found(file)) => Some(file),
            Some(State::NotFound(why)) => {
                self.pool.errors.push(Diagnostic::of_file(name, &why));
                None
            }
            _ => None,
        }
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    fn state(&self, name: &str) -> Option<State> {
        self.states.get(name).cloned()
    }

    /// Reads and parses a file.
    fn start(&mut self, name: &Rc<str>, stack: &mut Vec<Frame>) {
        let source = match self.source(name) {
            Ok(source) => source,
            Err(why) => {
                self.states.insert(name.clone(), State::NotFound(why.into()));
                return;
            }
        };
        if let Some(identity) = &source.identity
            && let Some(&file) = self.identities.get(identity)
        {
            // The same file by another name: it keeps its first one.
            self.states.insert(name.clone(), State::Found(file));
            return;
        }
        let text: Rc<str> = source.text.into();
        let file = self.pool.add_file(File {
            name: name.clone(),
            path: source.path,
            text: text.clone(),
            syntax_at: Position::NONE,
            ..File::default()
        });
        if **name == *DESCRIPTOR {
            self.descriptor = file;
        }
        if let Some(identity) = source.identity {
            self.identities.insert(identity, file);
        }
        self.states.insert(name.clone(), State::Found(file));
        if text.len() > FILE_BYTES_MAX || self.states.len() > FILES_MAX {
            self.pool.error(
                file,
                Position::NONE,
                format!("more than {FILE_BYTES_MAX} bytes or {FILES_MAX} files"),
            );
        } else {
            parse::parse(&mut self.pool, file, &text);
        }
        if self.pool[file].failed {
            self.pool[file].imports.clear();
        }
        stack.push(Frame { file, next_import: 0 });
    }

    fn source(&self, name: &str) -> Result<SourceFile, String> {
        if let Some(text) = builtin::source(name) {
            return Ok(SourceFile::new(text));
        }
        if name.contains('\\') || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("names of files have no backslash, \".\", \"..\" or empty part".to_owned());
        }
        self.tree.open(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => "file not found".to_owned(),
            _ => error.to_string(),
        })
    }

    /// All imports of a file are there, or its errors are known.
    fn finish(&mut self, file: FileId) {
        let missing =
            self.pool[file].imports.iter().filter_map(|import| match self.states.get(&import.name) {
                Some(State::NotFound(why)) => Some((import.at, import.name.clone(), why.clone())),
                _ => None,
            });
        for (at, name, why) in missing.collect::<Vec<_>>() {
            self.pool.error(file, at, format!("cannot import \"{name}\": {why}"));
        }
        if !self.pool[file].failed {
            self.link(file);
        }
        let file = &mut self.pool[file];
        file.is_done = true;
        file.text = "".into();
        file.lines = OnceCell::default();
    }

    fn recursive_import(&mut self, stack: &[Frame], imported: FileId, name: &str) {
        let Some(start) = stack.iter().position(|frame| frame.file == imported) else { return };
        let cycle = &stack[start..];
        let mut path = String::new();
        for frame in cycle {
            path.push_str(&self.pool[frame.file].name);
            path.push_str(" -> ");
        }
        path.push_str(name);
        let first = &self.pool[imported].imports[cycle[0].next_import];
        let at = first.at;
        self.pool.error(imported, at, format!("file imports itself: {path}"));
        for frame in cycle {
            self.pool[frame.file].failed = true;
        }
    }

    fn link(&mut self, file: FileId) {
        let mut scope = self.scope(file);
        self.declare(&mut scope);
        self.resolve(&mut scope);
        if !self.pool[file].failed {
            options::interpret(self, &mut scope);
        }
        if !self.pool[file].failed {
            validate::validate(self, &mut scope);
        }
        if self.pool[file].failed {
            return;
        }
        if self.is_given(file) {
            self.warn_of_unused(&scope);
        }
        let with_source_info = self.with_source_info;
        let encoded = encode::file(&mut self.pool, file, with_source_info);
        let file = &mut self.pool[file];
        file.encoded = encoded;
        file.locations = Locations::default();
    }

    fn scope(&mut self, file: FileId) -> Scope {
        let root = self.root;
        let mut scope = Scope {
            file,
            imports: HashSet::new(),
            option_imports: HashSet::new(),
            packages: HashSet::new(),
            package: root,
            root,
            used: HashSet::new(),
            numbers: HashMap::new(),
        };
        let imports: Vec<_> =
            self.pool[file].imports.iter().filter_map(|import| Some((import.kind, import.file?))).collect();
        for (kind, imported) in imports {
            self.is_descriptor_imported |= imported == self.descriptor;
            let visible =
                if kind == ImportKind::Option { &mut scope.option_imports } else { &mut scope.imports };
            let mut queue = vec![imported];
            while let Some(next) = queue.pop() {
                if !visible.insert(next) {
                    continue;
                }
                let public =
                    self.pool[next].imports.iter().filter(|import| import.kind == ImportKind::Public);
                queue.extend(public.filter_map(|import| import.file));
            }
        }
        let visible: Vec<FileId> = scope.imports.iter().chain(&scope.option_imports).copied().collect();
        for visible in visible {
            scope.see_package(&self.pool, self.pool[visible].node);
        }
        scope
    }

    fn warn_of_unused(&mut self, scope: &Scope) {
        let file = &self.pool[scope.file];
        let is_unused = |import: &&super::pool::Import| {
            let Some(imported) = import.file else { return false };
            let has_public =
                self.pool[imported].imports.iter().any(|import| import.kind == ImportKind::Public);
            import.kind != ImportKind::Public && !has_public && !scope.used.contains(&imported)
        };
        let unused: Vec<_> =
            file.imports.iter().filter(is_unused).map(|import| (import.at, import.name.clone())).collect();
        for (at, name) in unused {
            self.pool.warning(scope.file, at, format!("import \"{name}\" is unused"));
        }
    }
}

impl Scope {
    /// Makes a package and those around it visible.
    pub(super) fn see_package(&mut self, pool: &Pool, mut node: Option<NodeId>) {
        while let Some(package) = node
            && self.packages.insert(package)
        {
            node = pool[package].parent;
        }
    }
}
