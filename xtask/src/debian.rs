//! Another release of Debian in a folder, installed by debootstrap and apt-get. Programs are built in it and run
//! outside.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use crate::job::Job;
use crate::{tools, workspace};

/// A release of Debian.
pub(crate) struct Suite {
    name: &'static str,
    /// Foreign architecture to install packages for.
    architecture: Option<&'static str>,
}

/// Debian 13.
pub(crate) const TRIXIE: Suite = Suite { name: "trixie", architecture: None };
/// Debian 14, whose Rust is newer than our minimum version, with the libraries of 64-bit ARM.
pub(crate) const FORKY: Suite = Suite { name: "forky", architecture: Some("arm64") };

/// Bootstrap script for all releases since 2005: debootstrap does not know the names of releases newer than itself.
const SCRIPT: &str = "/usr/share/debootstrap/scripts/sid";
/// The build folder, next to the root of the Debian.
const BUILD: &str = "build";
/// PATH inside the other Debian, whatever this system's PATH is.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Makes all mounts below private to this process and its children (`unshare --mount`): the kernel removes them when
/// the last of them exits.
const UNSHARED: &str = "--mount --propagation private";

/// An installed Debian with the requested packages.
pub(crate) struct Debian {
    root: PathBuf,
}

impl Debian {
    /// Returns the Debian in `folder` with these packages. Creates it if it is missing or has other packages.
    pub(crate) fn get(suite: &Suite, folder: &Path, packages: &str) -> Result<Self> {
        let it = Self { root: folder.join("root") };
        // Written last: without it, the installation is incomplete.
        let complete = folder.join("root.txt");
        if fs::read_to_string(&complete).is_ok_and(|present| present == packages) {
            return Ok(it);
        }
        let missing = |failure: Failure| missing!("Debian's {} with {packages}: {failure}", suite.name);
        if !tools::is_root() {
            return Err(missing(failed!("it is created by debootstrap and chroot; run this as root once")));
        }
        tools::debian("debootstrap", &["debootstrap"])?;
        it.make(suite, folder).map_err(missing)?;
        it.install(packages).map_err(missing)?;
        fs::write(complete, packages)?;
        Ok(it)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn make(&self, suite: &Suite, folder: &Path) -> Result<()> {
        // Earlier builds refer to files of the old root.
        let remove = Job::new("rm").words("--recursive --force --one-file-system").arg(&self.root);
        remove.arg(folder.join(BUILD)).run()?;
        // The mirror is passed in the environment: failure messages contain the words and are published with results.
        let bootstrap =
            format!("exec debootstrap --variant=minbase {} \"$0\" \"$MIRROR\" {SCRIPT}", suite.name);
        let bootstrap = Job::new("unshare").words(UNSHARED).words("sh -c").arg(bootstrap).arg(&self.root);
        bootstrap.env("MIRROR", mirror()?).builds(15).run()?;
        if let Some(architecture) = suite.architecture {
            let dpkg = Job::new("chroot").arg(&self.root).words("dpkg --add-architecture").arg(architecture);
            dpkg.env("PATH", PATH).run()?;
        }
        Ok(())
    }

    fn install(&self, packages: &str) -> Result<()> {
        let apt = |words: &str| {
            // The lists of an unreleased suite may be some weeks old; their signatures are still checked.
            let apt =
                Job::new("chroot").arg(&self.root).words("apt-get --option Acquire::Check-Valid-Until=false");
            let apt = apt.words(words);
            apt.env("PATH", PATH).env("DEBIAN_FRONTEND", "noninteractive").builds(20)
        };
        apt("update -qq").run()?;
        apt("install --yes -qq --no-install-recommends").words(packages).run()?;
        apt("clean").run()
    }

    /// Returns a job for a script in the Debian. The workspace is mounted read-only at `/workspace`, each of `folders`
    /// at its name.
    pub(crate) fn shell(&self, folders: &[(&Path, &str)], script: &str) -> Job {
        /// Arguments: the root, the script, the workspace, and pairs of a folder and its name.
        const SCRIPT: &str = r#"set -e
            root=$0 script=$1 workspace=$2
            shift 2
            mkdir -p "$root/workspace"
            mount --bind "$workspace" "$root/workspace"
            mount --options remount,bind,ro "$root/workspace"
            while [ $# -gt 0 ]; do
                mkdir -p "$root$2"
                mount --bind "$1" "$root$2"
                shift 2
            done
            mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"
            exec chroot "$root" sh -c "$script""#;
        let job = Job::new("unshare").words(UNSHARED).words("sh -c").arg(SCRIPT).arg(&self.root).arg(script);
        let job = folders.iter().fold(job.arg(workspace::root()), |job, (from, to)| job.arg(from).arg(to));
        job.env("PATH", PATH)
    }

    /// Builds the CMake project `source`, a folder of `peers/`, in the folder `build` of `folder`.
    pub(crate) fn cmake(&self, source: &Path, folder: &Path) -> Result<()> {
        if !tools::is_root() {
            return Err(missing!("building in another Debian needs root (chroot); run this as root"));
        }
        let inside = source.strip_prefix(workspace::root()).expect("peers are in the workspace").display();
        let build = folder.join(BUILD);
        fs::create_dir_all(&build)?;
        let script = format!(
            "{{ test -f /build/build.ninja || cmake -G Ninja -S /workspace/{inside} -B /build; }} && \
             exec cmake --build /build"
        );
        self.shell(&[(&build, "/build")], &script).builds(15).run()
    }
}

/// The mirror of this system's apt, which has the other release, too. Security updates have another label.
fn mirror() -> Result<String> {
    let targets = Job::new("apt-get").words("indextargets --format $(REPO_URI)").arg("Label: Debian");
    let mirrors = targets.quiet_text()?;
    let mirror = mirrors.lines().next().map(str::to_owned);
    mirror.ok_or_else(|| failed!("`apt-get indextargets` lists no Debian mirror; run `apt-get update`"))
}
