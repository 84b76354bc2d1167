//! Building a peer: `peers/NAME` becomes the program `target/peers/NAME/peer`, or the reason why not,
//! `target/peers/NAME/not-built.txt`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::built::{BuiltPeer, measure};
use super::json;
use super::peer::{Contract, Peer, Recipe};
use crate::debian::{Debian, TRIXIE};
use crate::job::{Failure, Job, Log, is_installed};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{tools, workspace};

/// The executable in a peer's folder.
const PROGRAM: &str = "peer";
/// Beside it when there is none: why, in one line.
const NOT_BUILT: &str = "not-built.txt";

const GO_ADVICE: &str = "install Go (go.dev/dl), the version that its go.mod names or later";

/// Calls that a program must make of its own server before it is called built.
const TRIAL_CALLS: u64 = 1000;

impl Peer {
    /// Builds the program if it is not up to date, and shows that its client and its server understand each other.
    pub(crate) fn build(self, log: &Log) -> Result<BuiltPeer, Failure> {
        if let Recipe::Workspace = self.recipe {
            let program = rust::release_command(log)?;
            return Ok(BuiltPeer { name: self.name, version: self.about.to_owned(), program });
        }
        let folder = workspace::target().join("peers").join(self.name);
        fs::create_dir_all(&folder)?;
        let tried = self.build_in(&folder, log).map_err(|failure| with_log(failure, log));
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

    fn build_in(self, folder: &Path, log: &Log) -> Result<BuiltPeer, Failure> {
        let program = folder.join(PROGRAM);
        self.recipe.follow(&workspace::root().join("peers").join(self.name), folder, log)?;
        if !program.is_file() {
            return Err(Failure::failed(format!("its build left no program `{PROGRAM}`")));
        }
        let version = Job::new(&program).words("version").text(log)?;
        let built = BuiltPeer { name: self.name, version: version.trim_end().to_owned(), program };
        match self.contract {
            Contract::Calls => try_out(&built, &built, log)?,
            Contract::Drives { server } => {
                let other = server.build(log).map_err(|failure| {
                    let name = server.name;
                    Failure::missing(format!(
                        "it is tried at the server of {name}, and there is none: {failure}"
                    ))
                })?;
                try_out(&built, &other, log)?;
            }
            Contract::Json => {
                json::try_out(&built, "", log)?;
            }
            // That it starts is seen already; what it converts is the study's to say.
            Contract::Converts => {}
        }
        Ok(built)
    }
}

impl Recipe {
    /// From the sources in `source` to the program in `folder`. Build trees lie beside it and go with `cargo clean`.
    fn follow(self, source: &Path, folder: &Path, log: &Log) -> Result<(), Failure> {
        match self {
            Self::Workspace => Ok(()),
            Self::Member { package } => {
                Job::cargo("build --release --locked --package").arg(package).minutes(30).run(log)?;
                let program = folder.join(PROGRAM);
                absent(&program)?;
                Ok(symlink(Path::new("../../release").join(package), program)?)
            }
            Self::Cargo => {
                // One for all of them: most of what they stand on is the same, and has gigabytes.
                let shared = workspace::target().join("peers-cargo");
                let build = Job::cargo("build --release --locked --target-dir").arg(&shared);
                build.directory(source).builds().minutes(30).run(log)?;
                let program = folder.join(PROGRAM);
                absent(&program)?;
                // The next of them puts another program there.
                fs::copy(shared.join("release").join(PROGRAM), program)?;
                Ok(())
            }
            Self::Go => {
                needs("go", GO_ADVICE)?;
                let build = Job::new("go").words("build -o").arg(folder.join(PROGRAM)).arg(".");
                build.directory(source).builds().minutes(15).run(log)
            }
            Self::Make { packages, programs } => {
                tools::debian(packages, programs, log)?;
                make(source, folder, log)
            }
            Self::GeneratedGo => {
                needs("go", GO_ADVICE)?;
                tools::debian("make", &["make"], log)?;
                tools::protoc(log)?;
                make(source, folder, log)
            }
            Self::Debian13 { packages } => {
                Debian::get(&TRIXIE, folder, packages, log)?.cmake(source, folder, log)?;
                start_by_script(source, folder)
            }
            Self::Maven => {
                tools::debian("default-jdk-headless maven", &["java", "mvn"], log)?;
                let mut out = std::ffi::OsString::from("-Dout=");
                out.push(folder);
                let build = Job::new("mvn").words("--quiet --batch-mode package").arg(out);
                build.directory(source).builds().minutes(15).run(log)?;
                start_by_script(source, folder)
            }
        }
    }
}

/// The program is a script of the sources.
fn start_by_script(source: &Path, folder: &Path) -> Result<(), Failure> {
    let program = folder.join(PROGRAM);
    absent(&program)?;
    fs::copy(source.join("peer.sh"), program)?;
    Ok(())
}

fn make(source: &Path, folder: &Path, log: &Log) -> Result<(), Failure> {
    let mut build_folder = std::ffi::OsString::from("BUILD=");
    build_folder.push(folder);
    Job::new("make").arg(build_folder).directory(source).builds().minutes(15).run(log)
}

/// The client of one peer calls the server of one.
fn try_out(client: &BuiltPeer, server: &BuiltPeer, log: &Log) -> Result<(), Failure> {
    let port = free_port()?;
    let server = Server::start(&server.serve(port), port, log)?;
    let load = client.load(port, &format!("-n {TRIAL_CALLS} -c 8 --connections 2 --size 100 --warmup 0s"));
    let result = measure(load, log)?;
    server.stop()?;
    if result.messages != TRIAL_CALLS {
        return Err(Failure::failed(format!("of {TRIAL_CALLS} calls it counted {}", result.messages)));
    }
    Ok(())
}

/// Why there is no program, in one line.
pub(super) fn reason(failure: &Failure) -> String {
    failure.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A program that failed has written why into the log.
fn with_log(failure: Failure, log: &Log) -> Failure {
    match failure {
        Failure::Failed(message) => {
            let path = log.path().strip_prefix(workspace::root()).unwrap_or(log.path());
            Failure::Failed(format!("{message} ({} says why)", path.display()))
        }
        missing @ Failure::Missing(_) => missing,
    }
}

fn needs(program: &str, advice: &str) -> Result<(), Failure> {
    if is_installed(program) {
        return Ok(());
    }
    Err(Failure::missing(format!("there is no `{program}` on the PATH: {advice}")))
}

/// Removes a file that may be there.
fn absent(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
