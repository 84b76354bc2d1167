//! The generators, and one run of one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::report::Report;
use crate::bench::cores;
use crate::job::{Failure, Job, Log};
use crate::{tools, workspace};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generator {
    Thalweg,
    /// Told that requests are no templates, as ours finds out by itself.
    Ghz,
    /// As it is: it fills its templates for each call, with places or without.
    GhzWithTemplates,
    H2load,
}

impl Generator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Thalweg => "`thalweg load`",
            Self::Ghz => "ghz",
            Self::GhzWithTemplates => "ghz, not told that requests are no templates",
            Self::H2load => "h2load",
        }
    }
}

/// What is called: an empty message each way.
const METHOD: &str = "grpc.testing.BenchmarkService/UnaryCall";

/// All of them, against one server.
pub(super) struct Generators {
    thalweg: PathBuf,
    ghz: PathBuf,
    /// A message of gRPC that is empty: five bytes.
    body: PathBuf,
    port: u16,
    /// `ghz 0.121.0, h2load of nghttp2 1.52.0`
    pub(super) versions: String,
}

/// One run.
pub(super) struct Run {
    pub(super) report: Report,
    /// Processor time of the whole process, from its start to its end.
    pub(super) user: Duration,
    pub(super) system: Duration,
}

impl Generators {
    pub(super) fn get(thalweg: &Path, port: u16, log: &Log) -> Result<Self, Failure> {
        let ghz = tools::ghz(log)?;
        tools::debian("nghttp2-client", &["h2load"], log)?;
        // `h2load nghttp2/1.52.0`
        let h2load = Job::new("h2load").arg("--version").text(log)?.trim().replace("h2load nghttp2/", "");
        let versions =
            format!("ghz {}, h2load of nghttp2 {h2load}", tools::GHZ_VERSION.trim_start_matches('v'));
        let body = workspace::output().join("empty-message");
        fs::write(&body, [0; 5])?;
        Ok(Self { thalweg: thalweg.to_owned(), ghz, body, port, versions })
    }

    /// Unary calls over one connection, by the server's reflection, with these flags besides.
    pub(super) fn job(&self, generator: Generator, flags: &str) -> Job {
        let address = format!("127.0.0.1:{}", self.port);
        let job = match generator {
            Generator::Thalweg => Job::new(&self.thalweg).words(&format!(
                "load {address} --call {METHOD} -d {{}} --connections 1 --warmup 0s -O json"
            )),
            Generator::Ghz | Generator::GhzWithTemplates => {
                let job =
                    Job::new(&self.ghz).words(&format!("--insecure --call {METHOD} -d {{}} --connections 1"));
                let job = match generator {
                    Generator::Ghz => job.words("--disable-template-functions --disable-template-data"),
                    _ => job,
                };
                job.arg(&address)
            }
            Generator::H2load => Job::new("h2load")
                .words("-t 1 -c 1 -H content-type:application/grpc -H te:trailers -d")
                .arg(&self.body)
                .arg(format!("http://{address}/{METHOD}")),
        };
        job.words(flags).under(cores::CLIENT)
    }

    pub(super) fn run(&self, generator: Generator, flags: &str, log: &Log) -> Result<Run, Failure> {
        let job = self.job(generator, flags);
        let before = processor_time()?;
        let text = job.text(log)?;
        let after = processor_time()?;
        let report = match generator {
            Generator::Thalweg => Report::of_thalweg(&text),
            Generator::Ghz | Generator::GhzWithTemplates => Report::of_ghz(&text),
            Generator::H2load => Report::of_h2load(&text),
        };
        let report = report.ok_or_else(|| Failure::failed(format!("`{job}` left a figure out")))?;
        Ok(Run {
            report,
            user: after[0].saturating_sub(before[0]),
            system: after[1].saturating_sub(before[1]),
        })
    }
}

/// Of all processes that this one has waited for, and of those that they have: user and system.
fn processor_time() -> Result<[Duration; 2], Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let ticks = waited_for(&stat).ok_or_else(|| Failure::failed("/proc/self/stat tells no times"))?;
    Ok(ticks.map(|ticks| Duration::from_millis(10 * ticks)))
}

/// proc(5): the fields 16 and 17, cutime and cstime, in hundredths of a second. The command's name, which may hold
/// anything, ends with the last bracket.
fn waited_for(stat: &str) -> Option<[u64; 2]> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some([fields.get(13)?.parse().ok()?, fields.get(14)?.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::waited_for;

    #[test]
    fn times_of_children_are_the_two_behind_ones_own() {
        let stat = "123 (a) b) S 1 123 123 0 -1 4194304 1 2 3 4 10 20 300 400 20 0 1 0";
        assert_eq!(waited_for(stat), Some([300, 400]));
    }
}
