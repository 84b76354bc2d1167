//! Why figures of a run say nothing of its server.

use thalweg_load::LoadRun;
use thalweg_load::record::LoadResult;

use crate::comparison::WindowRun;

/// What invalidates a run of any method.
pub(super) fn of_run(run: &LoadRun) -> Vec<String> {
    let part = run.so_far.then(|| "the run had not finished".to_owned());
    part.into_iter().chain(run.not_valid.reasons.iter().map(|reason| reason.text.clone())).collect()
}

/// What invalidates a run of BenchmarkService.
pub(super) fn of_benchmark(result: &LoadResult) -> Vec<String> {
    result.notes.iter().filter(|note| note.invalidates).map(|note| note.text.clone()).collect()
}

/// What invalidates a window.
pub(super) fn of_window(run: &WindowRun) -> Vec<String> {
    match run {
        WindowRun::Method(run) => of_run(run),
        WindowRun::Benchmark(result) => of_benchmark(result),
    }
}
