//! The suite `programs`: published programs on tonic, in one program per stack, and the servers that they call.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{etcd, files, published, tools, workspace};

/// The suite's manifests, by the crate used as `tonic`.
pub(crate) const OURS: &str = "thalweg-tonic";
pub(crate) const PATCHED: &str = "patched";
pub(crate) const THEIRS: &str = "tonic";

/// Programs that call the suite's own server.
pub(crate) const WITH_STUBS: &[&str] = &[
    "console",
    "details",
    "flight",
    "middleware",
    "pubsub",
    "qdrant",
    "served",
    "spiffe",
    "telemetry",
    "xds",
];
/// Programs that call other servers.
pub(crate) const WITH_OTHERS: &[&str] = &["containerd", "etcd"];

/// The package of a stack.
pub(crate) fn suite(stack: &str) -> PathBuf {
    workspace::suites().join("programs").join(stack)
}

/// Builds the suite's program on this stack, with cargo's profile `dev` or `release`.
pub(crate) fn build(stack: &str, profile: &str) -> Result<PathBuf> {
    let target = published::build_folder();
    let build = Job::cargo("build --locked --quiet --profile").arg(profile).arg("--target-dir").arg(&target);
    build.directory(suite(stack)).builds(20).run()?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target.join(folder).join(format!("programs-{stack}")))
}

/// A server, with a folder that is removed with it.
pub(crate) struct ProgramServer {
    pub(crate) server: Server,
    folder: PathBuf,
}

impl ProgramServer {
    /// Starts the suite's own server, on `program`'s stack, under `wrapper`, which may be empty.
    pub(crate) fn stubs(program: &Path, wrapper: &str) -> Result<Self> {
        Self::start(wrapper, |port, folder| {
            Ok(Job::new(program).words(&format!("serve 127.0.0.1:{port}")).arg(folder.join("socket")))
        })
    }

    /// Starts the suite's server of streams, on `program`'s stack, under `wrapper`.
    pub(crate) fn streams(program: &Path, wrapper: &str) -> Result<Self> {
        Self::start(
            wrapper,
            |port, _| Ok(Job::new(program).words(&format!("serve-streams 127.0.0.1:{port}"))),
        )
    }

    /// Starts the server that one of [`WITH_OTHERS`] calls, without data, under `wrapper`, which may be empty.
    pub(crate) fn other(name: &str, wrapper: &str) -> Result<Self> {
        Self::start(wrapper, |port, folder| match name {
            "containerd" => containerd(port, folder),
            _ => etcd::serve(&port.to_string(), name),
        })
    }

    fn start(wrapper: &str, job: impl FnOnce(u16, &Path) -> Result<Job>) -> Result<Self> {
        let port = free_port()?;
        // A UNIX socket's path has at most 107 bytes.
        let folder = std::env::temp_dir().join(format!("programs-{port}"));
        files::remove(&folder)?;
        fs::create_dir_all(&folder)?;
        let server = Server::start_at(&job(port, &folder)?.under(wrapper), port)?;
        Ok(Self { server, folder })
    }

    /// Where the program `name` finds it: a path for those that call over UNIX sockets.
    pub(crate) fn address(&self, name: &str) -> String {
        match name {
            "containerd" | "spiffe" => self.folder.join("socket").display().to_string(),
            _ => self.server.address(),
        }
    }
}

impl Drop for ProgramServer {
    fn drop(&mut self) {
        // A process that has not ended yet may still write into it; the system empties its folder of temporary files.
        let _ = files::remove(&self.folder);
    }
}

/// A containerd without the parts that need more than a folder. It listens on `socket` in the folder and on the port.
fn containerd(port: u16, folder: &Path) -> Result<Job> {
    let path = |name: &str| folder.join(name).display().to_string();
    let config = format!(
        r#"version = 2
root = "{}"
state = "{}"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
address = "{}"
tcp_address = "127.0.0.1:{port}"
[ttrpc]
address = "{}"
"#,
        path("root"),
        path("state"),
        path("socket"),
        path("ttrpc")
    );
    fs::write(path("config.toml"), config)?;
    Ok(Job::new(tools::containerd()?).arg("--config").arg(path("config.toml")))
}
