//! Links files: declares their names and resolves references.

mod declare;
pub(super) mod lookup;
mod numbers;
mod resolve;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::edition::Edition;
use super::ids::{FieldId, FileId, MessageId, NodeId};
use super::pool::{File, Import, ImportKind, Pool};

/// All files that are compiled.
pub(super) struct Linker {
    pub(super) pool: Pool,
    root: NodeId,
    /// `descriptor.proto`, present even if it is not imported. An empty file until it is loaded.
    pub(super) descriptor: FileId,
    is_descriptor_imported: bool,
    /// Names of the files to compile, without their imports.
    pub(super) requested: HashSet<Rc<str>>,
}

/// The file being linked, and the files visible to it.
pub(super) struct Scope {
    pub(super) file: FileId,
    /// Its imports and their public imports.
    pub(super) imports: HashSet<FileId>,
    /// Its option imports and their public imports, of which only extensions are visible.
    pub(super) option_imports: HashSet<FileId>,
    pub(super) packages: HashSet<NodeId>,
    pub(super) package: NodeId,
    pub(super) root: NodeId,
    /// The imports that were used.
    pub(super) used: HashSet<FileId>,
    /// Fields of this file by message and number.
    numbers: Numbers,
}

/// The fields of a file by message and number.
type Numbers = HashMap<(MessageId, i32), FieldId>;

impl Linker {
    pub(super) fn new() -> Self {
        let mut pool = Pool::default();
        let root = pool.root();
        let descriptor = pool.add_file(File::default());
        Linker { pool, root, descriptor, is_descriptor_imported: false, requested: HashSet::new() }
    }

    pub(super) fn is_requested(&self, file: FileId) -> bool {
        self.requested.contains(&self.pool[file].name)
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// Returns the edition of the file being linked.
    pub(super) fn edition(&self, scope: &Scope) -> Edition {
        self.pool[scope.file].edition
    }

    /// Determines the files and packages visible to a file.
    pub(super) fn scope(&mut self, file: FileId) -> Scope {
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
            scope.make_visible(&self.pool, self.pool[visible].node);
        }
        scope
    }

    pub(super) fn warn_unused_imports(&mut self, scope: &Scope) {
        let file = &self.pool[scope.file];
        let is_unused = |import: &&Import| {
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
    /// Makes a package and its enclosing packages visible.
    pub(super) fn make_visible(&mut self, pool: &Pool, mut node: Option<NodeId>) {
        while let Some(package) = node
            && self.packages.insert(package)
        {
            node = pool[package].parent;
        }
    }
}
