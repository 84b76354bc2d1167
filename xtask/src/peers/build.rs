//! Building a peer: `peers/NAME` becomes the program `target/peers/NAME/peer`, or the reason why not,
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
/// Beside it when there is none: why, in one line.
const NOT_BUILT: &str = "not-built.txt";

/// Calls that a program must make of its own server before it is called built.
const TRIAL_CALLS: u64 = 1000;

impl Peer {
    /// Builds the program if it is not up to date, and shows that its client and its server understand each other.
    pub(crate) fn build(self) -> Result<BuiltPeer> {
        if let Recipe::Workspace = self.recipe {
            let program = rust::release_command()?;
            return Ok(BuiltPeer { name: self.name, version: self.about.to_owned(), program });
        }
        let folder = workspace::target().join("peers").join(self.name);
        fs::create_dir_all(&folder)?;
        let tried = self.build_in(&folder).map_err(with_log);
        match &tried {
            Ok(_) => absent(&folder.join(NOT_BUILT))?,
            Err(failure) => {
                // What an earlier source left would be measured as if it were this one.
                absent(&folder.join(PROGRAM))?;
                fs::write(folder.join(NOT_BUILT), reason(failure) + "\n")?;
            }
        }
        tried
    }

    fn build_in(self, folder: &Path) -> Result<BuiltPeer> {
        let program = folder.join(PROGRAM);
        self.recipe.follow(&workspace::root().join("peers").join(self.name), folder)?;
        ensure!(program.is_file(), "its build left no program `{PROGRAM}`");
        let version = Job::new(&program).words("version").text()?;
        let built = BuiltPeer { name: self.name, version: version.trim_end().to_owned(), program };
        match self.contract {
            Contract::Calls => try_out(&built, &built)?,
            Contract::Drives { server } => {
                let other = server.build().map_err(|failure| {
                    missing!("it is tried at the server of {}, and there is none: {failure}", server.name)
                })?;
                try_out(&built, &other)?;
            }
            Contract::Json => drop(json::try_out(&built, "")?),
            // That it starts is seen already; what it converts is the study's to say.
            Contract::Converts => {}
        }
        Ok(built)
    }
}

impl Recipe {
    /// From the sources in `source` to the program in `folder`. Build trees lie beside it and go with `cargo clean`.
    fn follow(self, source: &Path, folder: &Path) -> Result<()> {
        match self {
            Self::Workspace => Ok(()),
            Self::Member { package } => {
                Job::cargo("build --release --locked --package").arg(package).minutes(30).run()?;
                symlink(Path::new("../../release").join(package), fresh(folder)?)?;
                Ok(())
            }
            Self::Cargo => {
                // One for all of them: most of what they stand on is the same, and has gigabytes.
                let shared = workspace::target().join("peers-cargo");
                let build = Job::cargo("build --release --locked --target-dir").arg(&shared);
                build.directory(source).builds(30).run()?;
                // The next of them puts another program there.
                fs::copy(shared.join("release").join(PROGRAM), fresh(folder)?)?;
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

/// The program is a script of the sources.
fn start_by_script(source: &Path, folder: &Path) -> Result<()> {
    fs::copy(source.join("peer.sh"), fresh(folder)?)?;
    Ok(())
}

/// Where the program is to be, and is not yet.
fn fresh(folder: &Path) -> Result<PathBuf> {
    let program = folder.join(PROGRAM);
    absent(&program)?;
    Ok(program)
}

fn make(source: &Path, folder: &Path) -> Result<()> {
    Job::new("make").arg(format!("BUILD={}", folder.display())).directory(source).builds(15).run()
}

/// The client of one peer calls the server of one.
fn try_out(client: &BuiltPeer, server: &BuiltPeer) -> Result<()> {
    let server = Server::start(|port| server.serve(port))?;
    let flags = format!("-n {TRIAL_CALLS} -c 8 --connections 2 --size 100 --warmup 0s");
    let counted = measure(client.load(server.port(), &flags))?.messages;
    server.stop()?;
    ensure!(counted == TRIAL_CALLS, "of {TRIAL_CALLS} calls it counted {counted}");
    Ok(())
}

/// Why there is no program, in one line.
pub(super) fn reason(failure: &Failure) -> String {
    failure.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A program that failed has written why into the log.
fn with_log(failure: Failure) -> Failure {
    let path = log::path();
    match failure {
        Failure::Failed(message) => {
            failed!(
                "{message} ({} says why)",
                path.strip_prefix(workspace::root()).unwrap_or(&path).display()
            )
        }
        other => other,
    }
}

/// Removes a file that may be there.
fn absent(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
