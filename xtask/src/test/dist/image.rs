//! `deploy/Dockerfile`, step by step in folders that become roots: a machine that builds images has a daemon, and this
//! one need not. What comes of it is tried.

use std::fs;
use std::path::{Path, PathBuf};

use crate::debian::{Debian, PATH, TRIXIE};
use crate::dist::Dist;
use crate::failure::Result;
use crate::job::Job;
use crate::{files, tools, workspace};

/// The one image that others are made from.
const BASE: &str = "debian:13-slim";
/// What is in our base besides, so that its own `apt-get install` finds it there.
const PACKAGES: &str = "ca-certificates";
/// A study that takes seconds.
const STUDY: &str = "lab --quick --calls unary --sizes 0,1KiB --transports tcp --budget 40s";

pub(super) fn check(dist: &Dist) -> Result<String> {
    if !tools::is_root() {
        return Err(missing!("only root can change the root of a program (chroot): run this as root"));
    }
    let text = fs::read_to_string(workspace::root().join("deploy/Dockerfile"))?;
    let steps = read(&text)?;
    let folder = workspace::output().join("image");
    let image = Builder { folder, context: dist.folder.clone() }.build(&steps)?;
    image.try_out()?;
    Ok(format!(
        "deploy/Dockerfile made an image of {:.1} MB, in which {STUDY:?} ran as user {}",
        size(&image.root)? as f64 / 1e6,
        image.user
    ))
}

/// An instruction, of those that the file has.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A stage begins: from which image, and its name.
    From(String, Option<String>),
    Run(String),
    /// From the context; what is a tarball is unpacked.
    Add(String, String),
    /// From a stage.
    Copy(String, String, String),
    User(String),
    Directory(String),
    Entry(String),
}

fn read(text: &str) -> Result<Vec<Step>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    joined.lines().map(str::trim).filter(|line| !line.is_empty()).map(step).collect()
}

fn step(line: &str) -> Result<Step> {
    let unknown = || failed!("this test does not know how to do: {line}");
    let (word, rest) = line.split_once(' ').ok_or_else(unknown)?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let text = |word: &str| word.to_owned();
    match (word, words.as_slice()) {
        ("FROM", [image]) => Ok(Step::From(text(image), None)),
        ("FROM", [image, "AS", name]) => Ok(Step::From(text(image), Some(text(name)))),
        ("RUN", _) => Ok(Step::Run(text(rest))),
        ("ADD", [from, to]) => Ok(Step::Add(text(from), text(to))),
        ("COPY", [stage, from, to]) => {
            let stage = stage.strip_prefix("--from=").ok_or_else(unknown)?;
            Ok(Step::Copy(text(stage), text(from), text(to)))
        }
        ("USER", [user]) => Ok(Step::User(text(user))),
        ("WORKDIR", [directory]) => Ok(Step::Directory(text(directory))),
        ("ENTRYPOINT", [entry]) => {
            let entry = entry.strip_prefix("[\"").and_then(|entry| entry.strip_suffix("\"]"));
            entry.map(|entry| Step::Entry(text(entry))).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

struct Builder {
    /// Where the stages lie.
    folder: PathBuf,
    /// What is built from.
    context: PathBuf,
}

/// What the last stage came to.
struct Image {
    root: PathBuf,
    user: String,
    directory: String,
    entry: String,
}

impl Builder {
    fn build(&self, steps: &[Step]) -> Result<Image> {
        let mut image = Image {
            root: PathBuf::new(),
            user: String::new(),
            directory: "/".to_owned(),
            entry: String::new(),
        };
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::From(from, name) => {
                    image.root = self.begin(from, name.as_deref().unwrap_or(&number.to_string()))?;
                }
                Step::Run(script) => {
                    let run = Job::new("chroot").arg(&image.root).words("sh -c").arg(script);
                    run.env("DEBIAN_FRONTEND", "noninteractive").env("PATH", PATH).builds(10).run()?;
                }
                Step::Add(pattern, to) => {
                    let to = image.root.join(to.trim_start_matches('/'));
                    fs::create_dir_all(&to)?;
                    let unpack = format!("exec tar --extract --gzip --file {pattern} --directory \"$0\"");
                    Job::new("sh").arg("-c").arg(unpack).arg(to).directory(&self.context).run()?;
                }
                Step::Copy(stage, from, to) => {
                    let from = self.folder.join(stage).join(from.trim_start_matches('/')).join(".");
                    let to = image.root.join(to.trim_start_matches('/'));
                    Job::new("cp").arg("--archive").arg(from).arg(to).run()?;
                }
                Step::User(user) => image.user.clone_from(user),
                Step::Directory(directory) => image.directory.clone_from(directory),
                Step::Entry(entry) => image.entry.clone_from(entry),
            }
        }
        Ok(image)
    }

    /// The root of a stage.
    fn begin(&self, image: &str, name: &str) -> Result<PathBuf> {
        let stage = self.folder.join(name);
        Job::new("rm").words("--recursive --force --one-file-system").arg(&stage).run()?;
        fs::create_dir_all(&stage)?;
        match image {
            "scratch" => {}
            BASE => {
                let base = Debian::get(&TRIXIE, &self.folder.join("base"), PACKAGES)?;
                Job::new("cp").arg("--archive").arg(base.root().join(".")).arg(&stage).run()?;
            }
            other => bail!("this test has no image {other}"),
        }
        Ok(stage)
    }
}

impl Image {
    /// The entry with these words, as its user, in its directory, with `/proc` and `/dev`, and nothing else of this
    /// machine.
    fn run(&self, words: &str) -> Job {
        const SCRIPT: &str = r#"set -e
            mkdir -p "$1/proc" "$1/dev"
            mount -t proc proc "$1/proc"
            mount --rbind /dev "$1/dev"
            root=$1 user=$2 directory=$3
            shift 3
            exec unshare --root "$root" --wd "$directory" --setgid "${user#*:}" --setuid "${user%:*}" "$@""#;
        let job = Job::new("unshare").words("--mount --propagation private sh -c").arg(SCRIPT).arg("run");
        job.arg(&self.root).arg(&self.user).arg(&self.directory).arg(&self.entry).words(words)
    }

    fn try_out(&self) -> Result<()> {
        runs(&self.run("--version"))?;
        self.run(STUDY).words("--out").arg(Path::new(&self.directory).join("study")).minutes(3).run()?;
        let page = self.root.join(self.directory.trim_start_matches('/')).join("study/report.html");
        ensure!(
            fs::metadata(&page).map_or(0, |data| data.len()) >= 10_000,
            "the study in the image has left no page"
        );
        // Peers are built from sources, and there are none.
        for words in ["lab --quick --against grpc-cpp", "lab codec --quick"] {
            let refused = self.run(words).output()?;
            let said = refused.err;
            if refused.status.success() || !said.contains("cargo xtask peers") || !said.contains("--peers") {
                bail!("`{words}` without sources does not say how to get them: {said}");
            }
        }
        Ok(())
    }
}

/// `thalweg --version` runs, and says that it is that.
pub(super) fn runs(version: &Job) -> Result<()> {
    let said = version.text()?;
    if said.starts_with("thalweg ") {
        return Ok(());
    }
    Err(failed!("`{version}`: the command calls itself {said:?}"))
}

/// Of all files in it, bytes.
fn size(folder: &Path) -> Result<u64> {
    let lens = files::below(folder)?.into_iter().map(|path| Ok(fs::symlink_metadata(path)?.len()));
    lens.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        let text = "# words\nFROM debian:13-slim AS a\nRUN one && \\\n    two\n\nFROM scratch\nCOPY --from=a /x/ /\n\
                    USER 1:1\nENTRYPOINT [\"/y\"]\n";
        let expected = [
            Step::From("debian:13-slim".to_owned(), Some("a".to_owned())),
            Step::Run("one &&      two".to_owned()),
            Step::From("scratch".to_owned(), None),
            Step::Copy("a".to_owned(), "/x/".to_owned(), "/".to_owned()),
            Step::User("1:1".to_owned()),
            Step::Entry("/y".to_owned()),
        ];
        assert_eq!(read(text).unwrap(), expected);
        for unknown in ["EXPOSE 80", "COPY a b", "ENTRYPOINT thalweg", "RUN"] {
            assert!(read(unknown).is_err(), "{unknown}");
        }
    }

    fn deploy(file: &str) -> String {
        fs::read_to_string(workspace::root().join("deploy").join(file)).unwrap()
    }

    #[test]
    fn the_file_itself_is_understood() {
        assert!(read(&deploy("Dockerfile")).is_ok_and(|steps| steps.len() > 5));
    }

    /// They cannot ask the image, and Kubernetes wants a number.
    #[test]
    fn the_manifests_name_its_user_and_its_version() {
        let steps = read(&deploy("Dockerfile")).unwrap();
        let user = steps.iter().find_map(|step| if let Step::User(user) = step { Some(user) } else { None });
        let (user, group) = user.and_then(|user| user.split_once(':')).unwrap();
        for file in ["kubernetes/base/load.yaml", "kubernetes/base/merge.yaml"] {
            let text = deploy(file);
            assert!(text.contains(&format!("runAsUser: {user}\n")), "{file}");
            assert!(text.contains(&format!("runAsGroup: {group}\n")), "{file}");
        }
        let version = env!("CARGO_PKG_VERSION");
        assert!(deploy("kubernetes/base/kustomization.yaml").contains(&format!("newTag: {version}\n")));
        assert!(deploy("Dockerfile").contains(&format!("--tag thalweg:{version} ")));
    }
}
