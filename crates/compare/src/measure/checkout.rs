//! Checks out revisions of a repository, each in its own folder.

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
    /// Current folder, relative to the root. Revisions are built and run in their copy of it.
    prefix: PathBuf,
}

/// A revision in its own work tree, which is removed on drop.
#[derive(Debug)]
pub(super) struct Checkout {
    repository: Repository,
    work_tree: PathBuf,
    commit: String,
    /// Contains the work tree.
    _folder: TempDir,
}

/// Error of a checkout.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The folder is not in a repository, or the repository has no such revision.
    #[error("{0}")]
    Unknown(String),
    /// Git or the file system failed.
    #[error("failed to check out {revision}: {why}")]
    Failed {
        /// The revision.
        revision: String,
        /// The reason.
        why: String,
    },
}

impl Repository {
    /// Returns the repository that contains this folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder is not in a repository, or if `git` is missing.
    pub(super) fn at(folder: &Path) -> Result<Self, CheckoutError> {
        let ask = |what: &str| git(folder, &["rev-parse", what]).map_err(CheckoutError::Unknown);
        Ok(Self { root: ask("--show-toplevel")?.into(), prefix: ask("--show-prefix")?.into() })
    }

    /// Returns the hash of the commit that a revision names.
    ///
    /// # Errors
    ///
    /// Returns an error if the revision does not exist.
    pub(super) fn commit(&self, revision: &str) -> Result<String, CheckoutError> {
        let commit = format!("{revision}^{{commit}}");
        git(&self.root, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).map_err(|_| {
            CheckoutError::Unknown(format!("{} has no revision `{revision}`", self.root.display()))
        })
    }

    /// Checks the commit out into its own work tree, in a temporary folder.
    ///
    /// # Errors
    ///
    /// Returns an error if git fails.
    pub(super) fn checkout(&self, commit: &str) -> Result<Checkout, CheckoutError> {
        let failed = |why: String| CheckoutError::Failed { revision: commit.to_owned(), why };
        let folder = tempfile::Builder::new().prefix("thalweg-compare-").tempdir();
        let folder = folder.map_err(|error| failed(error.to_string()))?;
        let work_tree = folder.path().join("work-tree");
        let path = work_tree.display().to_string();
        // Created first, so that an incomplete work tree is removed, too.
        let checkout =
            Checkout { repository: self.clone(), work_tree, commit: commit.to_owned(), _folder: folder };
        git(&self.root, &["worktree", "add", "--quiet", "--detach", &path, commit]).map_err(failed)?;
        Ok(checkout)
    }
}

impl Checkout {
    /// Returns the work tree's copy of the folder in which the command was started.
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
            // A failure is harmless: the temporary folder is removed anyway, and git prunes stale work trees.
            let path = self.work_tree.display().to_string();
            let _ = git(&self.repository.root, &["worktree", "remove", "--force", &path]);
            let _ = fs::remove_dir_all(&self.work_tree);
        }
    }
}

/// Returns git's output, or its error output. Git runs in its own process group, so that Ctrl-C does not interrupt it.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null()).process_group(0);
    let output = command.output().map_err(|error: io::Error| format!("failed to start `git`: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkout_is_removed_on_drop() {
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
