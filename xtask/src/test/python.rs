//! The Python package: its suites, on it and on grpcio, with which it shares an interface.

use std::path::Path;

use crate::failure::Result;
use crate::job::Job;
use crate::python::{Build, install, package, wheel};
use crate::tools;

/// A program that imports an installed package, without any other package, and makes a call.
const HELLO: &str = "
import concurrent.futures
import thalweg.grpc as grpc

handler = grpc.unary_unary_rpc_method_handler(lambda request, context: request[::-1])
server = grpc.server(concurrent.futures.ThreadPoolExecutor())
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('a.B', {'C': handler}),))
port = server.add_insecure_port('localhost:0')
server.start()
with grpc.insecure_channel(f'localhost:{port}') as channel:
    print('called', channel.unary_unary('/a.B/C')(b'abc', timeout=20))
server.stop(None).wait()
";

/// Runs the suites on the package's wheel and on grpcio. A suite that fails on grpcio is wrong about the interface.
pub(super) fn check() -> Result<String> {
    let python = tools::python_suites()?;
    install(&python, &wheel(Build::Debug)?)?;
    let ours = suites(&python, "thalweg", "")?;
    let theirs = suites(&python, "grpcio", "")?;
    Ok(format!("{ours}; on grpcio {theirs}"))
}

/// Runs the long suites on an optimised wheel: memory over many calls, and published libraries on grpcio. Installs
/// the wheel for any Linux, and the sources, in environments that have only pip.
pub(super) fn long() -> Result<String> {
    let python = tools::python_programs()?;
    install(&python, &wheel(Build::Release)?)?;
    let passed = suites(&python, "thalweg", "-m long")?;
    let portable = wheel(Build::Manylinux)?;
    let empty = tools::empty_python("python-empty")?;
    install(&empty, &portable)?;
    hello(&empty)?;
    let from_sources = tools::empty_python("python-sources")?;
    let pip = Job::new(&from_sources).words("-m pip install --quiet --no-input").arg(package());
    pip.builds(30).run()?;
    hello(&from_sources)?;
    let name = portable.file_name().unwrap_or_default().display().to_string();
    Ok(format!("{passed}; {name} and `pip install ./python` make a call"))
}

/// Runs pytest with these flags and returns its summary.
fn suites(python: &Path, implementation: &str, flags: &str) -> Result<String> {
    let job = Job::new(python.with_file_name("pytest")).words("-q -p no:cacheprovider").words(flags);
    // Beside them, `thalweg` is the installed package, also for the programs that they start.
    let job = job.env("THALWEG_TEST_GRPC", implementation).directory(package().join("tests"));
    let job = job.env("THALWEG_INTEROP_CLIENT", tools::INTEROP_CLIENT.get()?);
    let job = job.env("THALWEG_INTEROP_SERVER", tools::INTEROP_SERVER.get()?);
    let captured = job.minutes(20).output()?;
    let summary = summary(&captured.out).ok_or_else(|| failed!("on {implementation}: pytest ran no test"))?;
    ensure!(captured.status.success(), "on {implementation}: {summary}");
    Ok(summary)
}

/// The counts of `12 passed, 3 skipped in 4.56s (0:01:02)`, pytest's last line.
fn summary(output: &str) -> Option<String> {
    let (counts, _) = output.lines().rev().find(|line| line.contains(" passed"))?.split_once(" in ")?;
    Some(counts.trim_matches(['=', ' ']).to_owned())
}

fn hello(python: &Path) -> Result<()> {
    let job = Job::new(python).arg("-c").arg(HELLO).directory(std::env::temp_dir());
    let printed = job.text()?;
    ensure!(printed.trim() == "called b'cba'", "{}: printed {printed:?}", python.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn counts_are_read() {
        assert_eq!(summary("...\n12 passed, 3 skipped in 4.56s\n").as_deref(), Some("12 passed, 3 skipped"));
        assert_eq!(
            summary("== 1 failed, 2 passed in 70s (0:01:10) ==").as_deref(),
            Some("1 failed, 2 passed")
        );
        assert_eq!(summary("no tests ran in 0.01s"), None);
    }
}
