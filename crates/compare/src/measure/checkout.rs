//! Revisions of a repository, each in a folder of its own.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A git repository.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    root: PathBuf,
    /// Where in it the command was called: revisions are built and run in the same folder of theirs.
    prefix: PathBuf,
}

/// A revision in a work tree of its own, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Checkout {
    repository: Repository,
    work_tree: PathBuf,
    commit: String,
    /// Holds the work tree.
    _folder: TempDir,
}

/// A revision that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// This is no repository, or has no such revision.
    #[error("{0}")]
    Unknown(String),
    /// Git, or the file system, failed.
    #[error("cannot check {revision} out: {why}")]
    Failed {
        /// Which revision.
        revision: String,
        /// Why.
        why: String,
    },
}

impl Repository {
    /// The one that this folder is in.
    ///
    /// # Errors
    ///
    /// Where it is in none, or there is no `git`.
    pub(super) fn at(folder: &Path) -> Result<Self, CheckoutError> {
        let ask = |what: &str| git(folder, &["rev-parse", what]).map_err(CheckoutError::Unknown);
        Ok(Self { root: ask("--show-toplevel")?.into(), prefix: ask("--show-prefix")?.into() })
    }

    /// The hash of the commit that a revision names.
    ///
    /// # Errors
    ///
    /// Where it names none.
    pub(super) fn commit(&self, revision: &str) -> Result<String, CheckoutError> {
        let commit = format!("{revision}^{{commit}}");
        git(&self.root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).map_err(|_| {
            CheckoutError::Unknown(format!("{} has no revision `{revision}`", self.root.display()))
        })
    }

    /// Puts the commit into a work tree of its own, in a temporary folder.
    ///
    /// # Errors
    ///
    /// Where git does not.
    pub(super) fn checkout(&self, commit: &str) -> Result<Checkout, CheckoutError> {
        let failed = |why: String| CheckoutError::Failed { revision: commit.to_owned(), why };
        let folder = tempfile::Builder::new().prefix("thalweg-compare-").tempdir();
        let folder = folder.map_err(|error| failed(error.to_string()))?;
        let work_tree = folder.path().join("work-tree");
        let path = work_tree.display().to_string();
        // Made first: what is half checked out is removed, too.
        let checkout =
            Checkout { repository: self.clone(), work_tree, commit: commit.to_owned(), _folder: folder };
        git(&self.root, &["worktree", "add", "--quiet", "--detach", &path, commit]).map_err(failed)?;
        Ok(checkout)
    }
}

impl Checkout {
    /// The folder in it that is like the one in which the command was called.
    pub(super) fn folder(&self) -> PathBuf {
        self.work_tree.join(&self.repository.prefix)
    }

    /// The commit's hash.
    pub(super) fn commit(&self) -> &str {
        &self.commit
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        if self.work_tree.exists() {
            // What git does not remove is in a temporary folder that is removed, and git forgets it by itself.
            let path = self.work_tree.display().to_string();
            let _ = git(&self.repository.root, &["worktree", "remove", "--force", &path]);
            let _ = fs::remove_dir_all(&self.work_tree);
        }
    }
}

/// What git says; or why it failed. It is in a process group of its own, so that a Ctrl-C does not end it half-way.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).process_group(0);
    let output = command.output().map_err(|error: io::Error| format!("cannot start `git`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_there_until_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let run = |arguments: &[&str]| git(root, arguments).unwrap();
        run(&["init", "--quiet"]);
        let identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"];
        fs::create_dir(root.join("inner")).unwrap();
        for text in ["one", "two"] {
            fs::write(root.join("inner/file"), text).unwrap();
            run(&["add", "."]);
            run(&[&identity[..], &["commit", "--quiet", "--message", text]].concat());
        }
        let repository = Repository::at(&root.join("inner")).unwrap();
        let commit = repository.commit("HEAD~1").unwrap();
        let checkout = repository.checkout(&commit).unwrap();
        let inner = checkout.folder();
        assert_eq!(fs::read_to_string(inner.join("file")).unwrap(), "one");
        fs::write(inner.join("built"), "something").unwrap();
        assert_eq!(run(&["worktree", "list"]).lines().count(), 2);
        drop(checkout);
        assert!(!inner.exists());
        assert_eq!(run(&["worktree", "list"]).lines().count(), 1);
        let error = repository.commit("no-such").unwrap_err().to_string();
        assert!(error.contains("has no revision `no-such`"), "{error}");
        assert!(Repository::at(Path::new("/")).is_err());
    }
}
