//! README and tutorial, step by step as written: commands run, files are written, and programs print the documented
//! output.
//!
//! The pages take packages from the project's public repository. Here git uses the work tree instead.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::server::{Server, free_port};
use crate::{files, workspace};

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// Ports in the pages. Each is replaced by a free one.
const PORTS: [u16; 2] = [50051, 50052];
/// Maximum lines of the README.
const README_LINES_MAX: usize = 150;

pub(super) fn check() -> Result<String> {
    // Outside the work tree: `cargo new` adds packages to a surrounding workspace.
    let folder = std::env::temp_dir().join(format!("thalweg-pages-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let outcome = follow(&folder);
    files::remove(&folder)?;
    outcome
}

fn follow(folder: &Path) -> Result<String> {
    let environment = environment(folder)?;
    let read = |page: &str| fs::read_to_string(workspace::root().join(page));

    let readme = read("README.md")?;
    let lines = readme.lines().count();
    ensure!(lines <= README_LINES_MAX, "README.md has {lines} lines; at most {README_LINES_MAX} are allowed");
    let mut reader = PageReader::new(folder.join("readme"), &environment)?;
    let mut steps = reader.follow(&code_blocks(section(&readme, "## Hello world")?))?;
    // The README describes this in a sentence.
    let server = reader.serve("cargo run --bin server", PORTS[0])?;
    let printed = reader.shell("cargo run --quiet --bin client").text()?;
    let is_printed = printed == "Hello Ada!\n" && readme.contains("it prints `Hello Ada!`");
    ensure!(is_printed, "the client of README.md printed {printed:?}");
    // Only the first block: the others are for a clone.
    let commands = code_blocks(section(&readme, "## The command")?);
    steps += reader.follow(commands.get(..1).unwrap_or_default())?;
    server.stop()?;

    let mut reader = PageReader::new(folder.join("tutorial"), &environment)?;
    let of_tutorial = reader.follow(&code_blocks(&read("docs/tutorial.md")?))?;
    Ok(format!(
        "{} steps of README.md, which has {lines} lines; {of_tutorial} of docs/tutorial.md",
        steps + 2
    ))
}

/// The environment of a reader who has just installed Rust.
fn environment(folder: &Path) -> Result<Vec<(&'static str, String)>> {
    let remote = folder.join("remote.git");
    let git = |words: &str| {
        let git = Job::new("git").arg("--git-dir").arg(&remote).arg("--work-tree").arg(workspace::root());
        git.words(words).run()
    };
    git("init --quiet --initial-branch main")?;
    // All of the work tree, including uncommitted changes.
    git("add --all")?;
    git("-c user.name=test -c user.email=test@localhost commit --quiet -m test")?;

    // A separate cargo home: checkouts of this remote must not remain.
    let home = folder.join("cargo");
    fs::create_dir_all(&home)?;
    let registry = workspace::cargo_home().join("registry");
    fs::create_dir_all(&registry)?;
    std::os::unix::fs::symlink(registry, home.join("registry"))?;
    let installed = folder.join("installed");
    let path = format!("{}:{}", installed.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let text = |path: &Path| path.display().to_string();
    Ok(vec![
        ("PATH", path),
        ("CARGO_HOME", text(&home)),
        ("CARGO_INSTALL_ROOT", text(&installed)),
        ("CARGO_TARGET_DIR", text(&workspace::target().join("packages"))),
        ("CARGO_NET_GIT_FETCH_WITH_CLI", "true".to_owned()),
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        ("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", remote.display())),
        ("GIT_CONFIG_VALUE_0", REPOSITORY.to_owned()),
        // Performance does not matter here.
        ("CARGO_PROFILE_DEV_DEBUG", "false".to_owned()),
        ("CARGO_PROFILE_RELEASE_DEBUG", "false".to_owned()),
        ("CARGO_PROFILE_RELEASE_LTO", "off".to_owned()),
        ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0".to_owned()),
        ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16".to_owned()),
    ])
}

/// Follows a page in a folder.
struct PageReader<'a> {
    folder: PathBuf,
    environment: &'a [(&'static str, String)],
    /// Ports in place of [`PORTS`].
    ports: [u16; 2],
    /// The servers, with their ports on the page.
    servers: Vec<(u16, Server)>,
}

impl<'a> PageReader<'a> {
    fn new(folder: PathBuf, environment: &'a [(&'static str, String)]) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, environment, ports: [free_port()?, free_port()?], servers: Vec::new() })
    }

    /// Follows the `blocks` and returns the number of files and commands.
    fn follow(&mut self, blocks: &[CodeBlock]) -> Result<usize> {
        let mut steps = 0;
        for block in blocks {
            let text = self.with_ports(&block.text);
            match (&*block.language, block.served_port) {
                ("sh", Some(port)) => {
                    // The page says to stop the previous one.
                    if let Some(earlier) = self.servers.iter().position(|(it, _)| *it == port) {
                        self.servers.remove(earlier).1.stop()?;
                    }
                    self.servers.push((port, self.serve(text.trim(), port)?));
                    steps += 1;
                }
                ("sh", None) => {
                    for command in text.lines() {
                        match command.strip_prefix("cd ") {
                            Some(folder) => self.folder.push(folder),
                            None => self.shell(command).run()?,
                        }
                        steps += 1;
                    }
                }
                ("console", _) => {
                    for ShownCommand { command, output } in shown_commands(&text) {
                        let printed = self.shell(&command).text()?;
                        let is_shown = printed.trim_end() == output.trim_end();
                        ensure!(is_shown, "`{command}` printed\n{printed}\nexpected\n{output}");
                        steps += 1;
                    }
                }
                _ => {
                    if let Some(path) = path_of(&text) {
                        files::write(&self.folder.join(path), &text)?;
                        steps += 1;
                    }
                }
            }
        }
        self.servers.drain(..).try_for_each(|(_, server)| server.stop())?;
        Ok(steps)
    }

    /// Starts a server with a command and waits until it listens on the replacement of `port`.
    fn serve(&self, command: &str, port: u16) -> Result<Server> {
        // Build first: the time limit for a server's start is shorter than a build.
        self.shell(&command.replacen("cargo run", "cargo build", 1)).run()?;
        let place = PORTS.iter().position(|it| *it == port);
        let port = self.ports[place.ok_or_else(|| failed!("port {port} is not in PORTS"))?];
        Server::start_at(&self.shell(&format!("exec {command}")), port)
    }

    fn shell(&self, command: &str) -> Job {
        let job = Job::new("bash").arg("-c").arg(self.with_ports(command)).directory(&self.folder).builds(20);
        self.environment.iter().fold(job, |job, (name, value)| job.env(name, value))
    }

    fn with_ports(&self, text: &str) -> String {
        PORTS
            .iter()
            .zip(self.ports)
            .fold(text.to_owned(), |text, (page, free)| text.replace(&page.to_string(), &free.to_string()))
    }
}

/// A command shown on a page, and its output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ShownCommand {
    pub(super) command: String,
    pub(super) output: String,
}

/// The commands in a `console` block: lines that begin with `$ `, each with the following lines as output.
pub(super) fn shown_commands(console: &str) -> Vec<ShownCommand> {
    let mut all: Vec<ShownCommand> = Vec::new();
    for line in console.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => {
                all.push(ShownCommand { command: command.to_owned(), output: String::new() });
            }
            (None, Some(last)) => last.output.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    all
}

/// A code block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeBlock {
    pub(super) language: String,
    pub(super) text: String,
    /// Port that its command serves on, until the page ends or starts another server there. A comment before the block
    /// sets it: `<!-- test: serves 50051 -->`.
    served_port: Option<u16>,
}

pub(super) fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut all = Vec::new();
    let mut open: Option<CodeBlock> = None;
    let mut served_port = None;
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let (language, text) = (language.to_owned(), String::new());
                open = Some(CodeBlock { language, text, served_port: served_port.take() });
            }
            (None, None) => {
                let port = line.strip_prefix("<!-- test: serves ").and_then(|rest| rest.strip_suffix(" -->"));
                served_port = port.and_then(|port| port.parse().ok()).or(served_port);
            }
            (Some(_), Some(_)) => all.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
    }
    all
}

/// The path in the comment on a file's first line.
fn path_of(text: &str) -> Option<&str> {
    let first = text.lines().next()?;
    let path = first.strip_prefix("// ").or_else(|| first.strip_prefix("# "))?;
    (path.contains('.') && !path.contains(' ')).then_some(path)
}

/// The part of a page below a heading.
fn section<'p>(page: &'p str, heading: &str) -> Result<&'p str> {
    let missing = || failed!("missing heading `{heading}`");
    let (_, below) = page.split_once(&format!("{heading}\n")).ok_or_else(missing)?;
    Ok(below.split("\n## ").next().unwrap_or(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_language_and_their_port() {
        let page =
            "# A\n```sh\na\nb\n```\n<!-- test: serves 50051 -->\n\n```sh\nc\n```\n```rust\n// d.rs\n```\n";
        let block = |language: &str, text: &str, served_port| CodeBlock {
            language: language.to_owned(),
            text: text.to_owned(),
            served_port,
        };
        assert_eq!(
            code_blocks(page),
            [block("sh", "a\nb\n", None), block("sh", "c\n", Some(50051)), block("rust", "// d.rs\n", None)]
        );
    }

    #[test]
    fn commands_have_what_they_print() {
        let shown = shown_commands("$ a b\n1\n2\n$ c\n");
        let read: Vec<_> = shown.iter().map(|shown| (&*shown.command, &*shown.output)).collect();
        assert_eq!(read, [("a b", "1\n2\n"), ("c", "")]);
    }

    #[test]
    fn files_have_paths() {
        assert_eq!(path_of("// src/main.rs\nfn main() {}"), Some("src/main.rs"));
        assert_eq!(path_of("# Cargo.toml\n"), Some("Cargo.toml"));
        assert_eq!(path_of("// Prints a line.\n"), None);
        assert_eq!(path_of("tonic = 1\n"), None);
    }

    #[test]
    fn sections_end_at_the_next_heading() {
        assert_eq!(section("a\n## B\nc\n### d\n## E\n", "## B").unwrap(), "c\n### d");
        assert!(section("a\n", "## B").is_err());
    }
}
