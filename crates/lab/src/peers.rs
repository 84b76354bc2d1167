//! Locates other stacks: programs that follow the contract in `peers/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::process::{Program, contract_violation, query_program};
use crate::stack::Stack;

/// Folder of the codec study's codecs.
pub const CODECS: &str = "codec";
/// Peers that convert messages in other languages: short name and folder of each.
pub const CONVERTERS: &[(&str, &str)] = &[("jvm", "jvm-codec")];

/// Peers that serve JSON and gRPC but make no calls.
pub const JSON_SERVERS: &[&str] = &["armeria", "axum", "connect-go", "grpc-gateway", "lognet", "spring"];
/// JSON servers that compile code at run time and are therefore slow at first.
pub const COMPILED_LATE: &[&str] = &["armeria", "lognet", "spring"];

/// Advice on getting the other stacks.
pub const NO_PEERS: &str = "other stacks not found; in a clone of the Thalweg repository run `cargo xtask peers`, then \
     use --peers target/peers";

/// A peer's executable in its folder.
const EXECUTABLE: &str = "peer";
/// File that replaces the executable if the build failed, with the reason.
const NOT_BUILT: &str = "not-built.txt";

/// A folder that contains a folder for each peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeersDirectory {
    path: PathBuf,
    /// Root of the source checkout that it belongs to, where missing peers can be built.
    checkout: Option<PathBuf>,
}

impl PeersDirectory {
    /// Uses this folder. Missing peers are not built.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), checkout: None }
    }

    /// Finds `target/peers` of the checkout that contains this program or the current directory.
    pub fn find() -> Option<Self> {
        let paths = [std::env::current_exe(), std::env::current_dir()];
        let checkout = paths.iter().flatten().find_map(|path| checkout_of(path))?;
        Some(Self { path: checkout.join("target/peers"), checkout: Some(checkout) })
    }

    /// Uses this folder, or [finds](Self::find) one if none is named.
    pub fn named_or_found(path: Option<&Path>) -> Option<Self> {
        path.map_or_else(Self::find, |path| Some(Self::at(path)))
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns names of stacks that are present or can be built, without peers that only convert messages or serve
    /// JSON.
    pub fn names(&self) -> BTreeSet<String> {
        let sources = self.checkout.as_ref().map(|checkout| checkout.join("peers"));
        let folders =
            sources.iter().chain([&self.path]).flat_map(|folder| fs::read_dir(folder).into_iter().flatten());
        let name_of =
            |entry: fs::DirEntry| entry.path().is_dir().then(|| entry.file_name().into_string().ok())?;
        let is_stack = |name: &String| name.parse::<Stack>().is_ok() && makes_calls(name);
        folders.flatten().filter_map(name_of).filter(is_stack).collect()
    }

    /// Returns the names whose executables are missing.
    pub fn missing<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
        names.into_iter().filter(|name| !self.executable(name).is_file()).collect()
    }

    /// Builds the named peers whose executables are missing, if their sources are available. Calls `say` with a line
    /// before the build. Failed builds show later as missing executables.
    ///
    /// # Errors
    ///
    /// Returns an error if the build cannot be started.
    pub fn build_missing(&self, names: &[String], say: fn(&str)) -> Result<(), String> {
        let missing = self.missing(names.iter().map(String::as_str));
        let Some(mut command) = self.build_command(&missing).filter(|_| !missing.is_empty()) else {
            return Ok(());
        };
        let (all, words) = (missing.join(", "), missing.join(" "));
        say(&format!("{all} not built yet; running `cargo xtask peers {words}`"));
        let started = command.status().map(drop);
        started.map_err(|error| format!("failed to start {}: {error}", command.get_program().display()))
    }

    /// Returns the command that builds the peers; `None` without sources. It prints to stderr.
    pub fn build_command(&self, names: &[&str]) -> Option<Command> {
        let checkout = self.checkout.as_ref()?;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["xtask", "peers"]).args(names).current_dir(checkout);
        command.stdin(Stdio::null()).stdout(io::stderr());
        Some(command)
    }

    /// Returns the peer's program, or why it is not available.
    pub fn program(&self, name: &str) -> Result<Program, String> {
        let path = self.executable_of(name)?;
        let version = query_program(Command::new(&path).arg("version"), None)?;
        let variants = query_program(Command::new(&path).arg("variants"), None)?;
        let version = version.into_iter().next().ok_or_else(|| contract_violation(&path, "version"))?;
        let [server_variants, client_variants] =
            ["server", "client"].map(|side| variants_of(side, &variants));
        let json = variants_of("json", &variants).unwrap_or_default();
        let client_variants = client_variants.ok_or_else(|| contract_violation(&path, "variants"))?;
        let serves = server_variants.is_some();
        let server_variants = server_variants.unwrap_or_default();
        let words = &[];
        Ok(Program { path, words, version, serves, server_variants, client_variants, json })
    }

    /// Returns the path of the peer's executable, or why there is none.
    pub fn executable_of(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.executable(name);
        if path.is_file() {
            return Ok(path);
        }
        let reason = fs::read_to_string(self.path.join(name).join(NOT_BUILT)).ok();
        let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        Err(reason.unwrap_or_else(|| format!("{} is not there", path.display())))
    }

    fn executable(&self, name: &str) -> PathBuf {
        self.path.join(name).join(EXECUTABLE)
    }
}

/// Returns whether the folder has a stack that serves and makes calls.
fn makes_calls(folder: &str) -> bool {
    let converts = folder == CODECS || CONVERTERS.iter().any(|converter| converter.1 == folder);
    !converts && !JSON_SERVERS.contains(&folder)
}

/// Returns the closest ancestor that contains the peers' contract.
fn checkout_of(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| folder.join("peers/README.md").is_file()).map(Path::to_owned)
}

/// Returns the words after `server` or `client`, from the line that starts with it.
fn variants_of(side: &str, lines: &[String]) -> Option<Vec<String>> {
    lines.iter().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == side).then(|| words.map(str::to_owned).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_parsed_by_side() {
        let lines = ["server callback cq", "client"].map(str::to_owned);
        assert_eq!(variants_of("server", &lines), Some(vec!["callback".to_owned(), "cq".to_owned()]));
        assert_eq!(variants_of("client", &lines), Some(vec![]));
        assert_eq!(variants_of("client", &lines[..1]), None);
    }

    #[test]
    fn sources_are_found_from_subfolders() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest.ancestors().nth(2).unwrap();
        assert_eq!(checkout_of(&manifest.join("src")).as_deref(), Some(root));
        assert_eq!(checkout_of(Path::new("/")), None);
        let here = PeersDirectory { path: root.join("target/peers"), checkout: Some(root.to_owned()) };
        let names = here.names();
        assert!(["tonic", "grpc-cpp", "grpc-go"].iter().all(|name| names.contains(*name)), "{names:?}");
        for (_, folder) in CONVERTERS {
            assert!(root.join("peers").join(folder).is_dir() && !names.contains(*folder), "{folder}");
        }
        assert!(!names.contains(CODECS), "{names:?}");
        for folder in JSON_SERVERS {
            assert!(root.join("peers").join(folder).is_dir() && !names.contains(*folder), "{folder}");
        }
        let command = here.build_command(&["tonic"]).unwrap();
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["xtask", "peers", "tonic"]);
    }

    #[test]
    fn missing_peer_has_a_reason() {
        let folder = std::env::temp_dir().join(format!("thalweg-lab-peers-{}", std::process::id()));
        fs::create_dir_all(folder.join("broken")).unwrap();
        let peers = PeersDirectory::at(&folder);
        assert!(peers.build_command(&["broken"]).is_none());
        assert_eq!(peers.missing(["broken"]), ["broken"]);
        assert!(peers.program("broken").unwrap_err().ends_with("broken/peer is not there"));
        fs::write(folder.join("broken").join(NOT_BUILT), "no compiler for it\n").unwrap();
        assert_eq!(peers.program("broken"), Err("no compiler for it".to_owned()));
        assert_eq!(peers.names(), BTreeSet::from(["broken".to_owned()]));
        fs::remove_dir_all(folder).unwrap();
    }
}
