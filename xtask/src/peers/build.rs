//! Builds a peer: `peers/NAME` becomes the program `target/peers/NAME/peer`, or the reason of the failure,
//! `target/peers/NAME/not-built.txt`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::built::{BuiltPeer, measure};
use super::json;
use super::peer::{Contract, Peer, Recipe};
use crate::debian::{Debian, TRIXIE};
use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::server::Server;
use crate::test::rust;
use crate::{log, tools, workspace};

/// The executable in a peer's folder.
const PROGRAM: &str = "peer";
/// File next to it with the reason of a failed build, in one line.
const NOT_BUILT: &str = "not-built.txt";

/// Calls to its own server that a program must pass to count as built.
const TRIAL_CALLS: u64 = 1000;

impl Peer {
    /// Builds the program if it is outdated, and checks that its client and server work together.
    pub(crate) fn build(self) -> Result<BuiltPeer> {
        if let Recipe::Workspace = self.recipe {
            let program = rust::release_command()?;
            return Ok(BuiltPeer { name: self.name, version: self.about.to_owned(), program });
        }
        let folder = workspace::target().join("peers").join(self.name);
        fs::create_dir_all(&folder)?;
        let result = self.build_in(&folder).map_err(with_log);
        match &result {
            Ok(_) => remove_if_exists(&folder.join(NOT_BUILT))?,
            Err(failure) => {
                // Otherwise a program of an earlier source would be measured.
                remove_if_exists(&folder.join(PROGRAM))?;
                fs::write(folder.join(NOT_BUILT), reason(failure) + "\n")?;
            }
        }
        result
    }

    fn build_in(self, folder: &Path) -> Result<BuiltPeer> {
        let program = folder.join(PROGRAM);
        self.recipe.build(&workspace::root().join("peers").join(self.name), folder)?;
        ensure!(program.is_file(), "its build produced no program `{PROGRAM}`");
        let version = Job::new(&program).words("version").text()?;
        let built = BuiltPeer { name: self.name, version: version.trim_end().to_owned(), program };
        match self.contract {
            Contract::Calls => smoke_test(&built, &built)?,
            Contract::Drives { server } => {
                let other = server.build().map_err(|failure| {
                    missing!("it is tested with the server of {}, which is missing: {failure}", server.name)
                })?;
                smoke_test(&built, &other)?;
            }
            Contract::Json => drop(json::smoke_test(&built, "")?),
            // Starting it was already checked; the study checks its conversions.
            Contract::Converts => {}
        }
        Ok(built)
    }
}

impl Recipe {
    /// Builds the program in `folder` from `source`. Build trees are in `target`, so `cargo clean` removes them.
    fn build(self, source: &Path, folder: &Path) -> Result<()> {
        match self {
            Self::Workspace => Ok(()),
            Self::Member { package } => {
                Job::cargo("build --release --locked --package").arg(package).minutes(30).run()?;
                symlink(Path::new("../../release").join(package), fresh_program_path(folder)?)?;
                Ok(())
            }
            Self::Cargo => {
                // A shared folder: most dependencies are the same and take gigabytes.
                let shared = workspace::target().join("peers-cargo");
                let build = Job::cargo("build --release --locked --target-dir").arg(&shared);
                build.directory(source).builds(30).run()?;
                // The next peer's build overwrites the program.
                fs::copy(shared.join("release").join(PROGRAM), fresh_program_path(folder)?)?;
                Ok(())
            }
            Self::Go => {
                tools::needs_go("it")?;
                let build = Job::new("go").words("build -o").arg(folder.join(PROGRAM)).arg(".");
                build.directory(source).builds(15).run()
            }
            Self::Make { packages, programs } => {
                tools::debian(packages, programs)?;
                make(source, folder)
            }
            Self::GeneratedGo => {
                tools::needs_go("it")?;
                tools::debian("make", &["make"])?;
                tools::protoc()?;
                make(source, folder)
            }
            Self::Debian13 { packages } => {
                Debian::get(&TRIXIE, folder, packages)?.cmake(source, folder)?;
                start_by_script(source, folder)
            }
            Self::Maven => {
                tools::debian("default-jdk-headless maven", &["java", "mvn"])?;
                let out = format!("-Dout={}", folder.display());
                let build = Job::new("mvn").words("--quiet --batch-mode package").arg(out);
                build.directory(source).builds(15).run()?;
                start_by_script(source, folder)
            }
        }
    }
}

/// Installs the script from the sources as the program.
fn start_by_script(source: &Path, folder: &Path) -> Result<()> {
    fs::copy(source.join("peer.sh"), fresh_program_path(folder)?)?;
    Ok(())
}

/// Path of the program, with any old one removed.
fn fresh_program_path(folder: &Path) -> Result<PathBuf> {
    let program = folder.join(PROGRAM);
    remove_if_exists(&program)?;
    Ok(program)
}

fn make(source: &Path, folder: &Path) -> Result<()> {
    Job::new("make").arg(format!("BUILD={}", folder.display())).directory(source).builds(15).run()
}

/// Has one peer's client call another's server.
fn smoke_test(client: &BuiltPeer, server: &BuiltPeer) -> Result<()> {
    let server = Server::start(|port| server.serve(port))?;
    let flags = format!("-n {TRIAL_CALLS} -c 8 --connections 2 --size 100 --warmup 0s");
    let call_count = measure(client.load(server.port(), &flags))?.messages;
    server.stop()?;
    ensure!(call_count == TRIAL_CALLS, "expected {TRIAL_CALLS} calls, it counted {call_count}");
    Ok(())
}

/// The reason of a failed build, in one line.
pub(super) fn reason(failure: &Failure) -> String {
    failure.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds the log's path to the message of a failed program.
fn with_log(failure: Failure) -> Failure {
    let path = log::path();
    match failure {
        Failure::Failed(message) => {
            failed!("{message}; see {}", path.strip_prefix(workspace::root()).unwrap_or(&path).display())
        }
        other => other,
    }
}

/// Removes a file if it exists.
fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
