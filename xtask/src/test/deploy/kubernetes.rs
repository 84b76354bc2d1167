//! The manifests of `deploy/kubernetes`: judged as an API server would, and their commands run here as its kubelets
//! would run them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::job::{Failure, Job, Log};
use crate::server::{Server, free_port};
use crate::test::rust;
use crate::{files, tools, workspace};

/// A kustomization, and a load that this machine makes in its place.
struct Deployed {
    folder: &'static str,
    rate: &'static str,
    duration: &'static str,
    /// What these make.
    calls: u64,
}

const DEPLOYED: &[Deployed] = &[
    Deployed { folder: "base", rate: "1000", duration: "1s", calls: 1000 },
    Deployed { folder: "overlays/ramp", rate: "100..700/1s,700", duration: "2s", calls: 1100 },
];

/// Parts begin so long after they were started.
const LEAD: Duration = Duration::from_secs(5);

/// Something that is done to the manifests, and what is said of it: what judges them sees what is wrong.
struct Damage {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    says: &'static str,
}

const DAMAGES: &[Damage] = &[
    Damage {
        file: "load.yaml",
        from: "  completions: 4\n",
        to: "",
        says: "spec.completions: Required value",
    },
    Damage {
        file: "load.yaml",
        from: "backoffLimitPerIndex",
        to: "backoffLimitPerIndeks",
        says: "unknown field \"spec.backoffLimitPerIndeks\"",
    },
    Damage {
        file: "load.yaml",
        from: "containerName: load\n          operator",
        to: "containerName: other\n          operator",
        says: "onExitCodes.containerName: Invalid value: \"other\"",
    },
    Damage {
        file: "load.yaml",
        from: "restartPolicy: Never",
        to: "restartPolicy: Always",
        says: "spec.template.spec.restartPolicy",
    },
    Damage {
        file: "load.yaml",
        from: "limits:\n              cpu: \"2\"",
        to: "limits:\n              cpu: \"1\"",
        says: "must be less than or equal to cpu limit",
    },
    Damage {
        file: "load.yaml",
        from: "- name: results\n              mountPath",
        to: "- name: result\n              mountPath",
        says: "volumeMounts[1].name: Not found: \"result\"",
    },
    Damage { file: "merge.yaml", from: "drop: [ALL]", to: "add: [CHOWN]", says: "unrestricted capabilities" },
    Damage {
        file: "results.yaml",
        from: "ReadWriteMany",
        to: "ReadWriteAll",
        says: "Unsupported value: \"ReadWriteAll\"",
    },
    Damage { file: "kustomization.yaml", from: "requests.json", to: "none.json", says: "none.json" },
];

pub(super) fn check(log: &Log) -> Result<String, Failure> {
    let manifests = tools::manifests(log)?;
    let thalweg = rust::command(log)?;
    let mut parts = 0;
    for deployed in DEPLOYED {
        let folder = manifests_folder().join(deployed.folder);
        let built = Job::new(&manifests).arg(folder).quiet_text(log)?;
        let built = Built(serde_json::from_str(&built).map_err(|error| Failure::failed(error.to_string()))?);
        parts += built.run(deployed, &thalweg, log).map_err(|failure| {
            Failure::failed(format!("deploy/kubernetes/{}: {failure}", deployed.folder))
        })?;
    }
    for damage in DAMAGES {
        damage.is_found(&manifests, log)?;
    }
    let (folders, damages) = (DEPLOYED.len(), DAMAGES.len());
    Ok(format!(
        "Kubernetes: {folders} kustomizations are valid and their {parts} parts run; {damages} kinds of damage found"
    ))
}

fn manifests_folder() -> PathBuf {
    workspace::root().join("deploy/kubernetes")
}

impl Damage {
    fn is_found(&self, manifests: &Path, log: &Log) -> Result<(), Failure> {
        let folder = workspace::output().join("damaged");
        let _ = fs::remove_dir_all(&folder);
        files::copy(&manifests_folder().join("base"), &folder)?;
        let path = folder.join(self.file);
        let text = fs::read_to_string(&path)?;
        if !text.contains(self.from) {
            return Err(Failure::failed(format!("{} has no `{}` any more", self.file, self.from)));
        }
        fs::write(&path, text.replace(self.from, self.to))?;
        let output = Job::new(manifests).arg(&folder).output(log)?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(1) && said.contains(self.says) {
            return Ok(());
        }
        Err(Failure::failed(format!("`{}` in {} was not found: {said}", self.to, self.file)))
    }
}

/// The objects that a kustomization makes.
struct Built(Vec<Value>);

impl Built {
    fn of(&self, kind: &str, name: &str) -> Result<&Value, Failure> {
        let found = self.0.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.ok_or_else(|| Failure::failed(format!("there is no {kind} {name}")))
    }

    /// Runs the load and joins it, and gives the number of parts.
    fn run(&self, deployed: &Deployed, thalweg: &Path, log: &Log) -> Result<u64, Failure> {
        let folder = workspace::output().join("deployed");
        let _ = fs::remove_dir_all(&folder);
        let port = free_port()?;
        let serve = Job::new(thalweg).words(&format!("serve --threads 1 --listen 127.0.0.1:{port}"));
        let server = Server::start(&serve, port, log)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let start_at = (now + LEAD).as_secs().to_string();
        let settings = BTreeMap::from(
            [
                ("TARGET", format!("127.0.0.1:{port}")),
                ("RATE", deployed.rate.to_owned()),
                ("DURATION", deployed.duration.to_owned()),
                ("WARMUP", "500ms".to_owned()),
                ("PATIENCE", "1m".to_owned()),
                ("START_AT", start_at.clone()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        let (load, merge) = (self.of("Job", "thalweg-load")?, self.of("Job", "thalweg-merge")?);
        let containers = |job: &Value, kind: &str| list(&job["spec"]["template"]["spec"][kind]).to_vec();
        let container = |job: &Value, kind: &str| containers(job, kind).first().cloned().unwrap_or_default();
        let parts = load["spec"]["completions"].as_u64().unwrap_or_default();
        let pod = |job: &Value, container: &Value, index: Option<u64>| {
            let mut settings = settings.clone();
            settings.extend(index.map(|index| ("JOB_COMPLETION_INDEX".to_owned(), index.to_string())));
            self.container(&job["spec"]["template"]["spec"], container, &settings, &folder)
        };
        let one = container(load, "containers");
        let environment = self.environment(&one)?;
        if load["spec"]["parallelism"] != parts || environment.get("PARTS") != Some(&parts.to_string()) {
            return Err(Failure::failed("completions, parallelism and PARTS are not the same number"));
        }
        let mut jobs = vec![pod(merge, &container(merge, "initContainers"), None)?];
        for index in 0..parts {
            jobs.push(pod(load, &one, Some(index))?);
        }
        thread::scope(|scope| {
            let run = |words: &[String]| Job::new(thalweg).all(words).run(log);
            let running: Vec<_> = jobs.iter().map(|words| scope.spawn(move || run(words))).collect();
            running.into_iter().try_for_each(|one| one.join().expect("it does not panic"))
        })?;
        // Those behind the first run one after the other.
        for later in containers(merge, "initContainers").iter().skip(1) {
            Job::new(thalweg).all(&pod(merge, later, None)?).run(log)?;
        }
        let shown = Job::new(thalweg).all(&pod(merge, &container(merge, "containers"), None)?).text(log)?;
        server.stop()?;
        let results = folder.join("results").join(start_at);
        let page = fs::read_to_string(results.join("merged.html"))?;
        let merged = fs::read_to_string(results.join("merged.json"))?;
        let merged: Value =
            serde_json::from_str(&merged).map_err(|error| Failure::failed(error.to_string()))?;
        // A call may find no processor before the end.
        let calls = merged["ok"].as_u64().unwrap_or(0) + merged["dropped"].as_u64().unwrap_or(0);
        let is_whole = calls == deployed.calls
            && merged["failed"] == 0
            && merged["schedule"] == deployed.rate
            && !merged["notes"].to_string().contains("missing")
            && merged["connections_established"] == 2 * parts;
        if let Some(missing) = missing(&page, &shown, &merged) {
            return Err(Failure::failed(format!("the page of the joined run does not say `{missing}`")));
        }
        if is_whole && shown.contains("grpc.testing.TestService/UnaryCall") {
            return Ok(parts);
        }
        Err(Failure::failed(format!("{calls} of {} calls: {}", deployed.calls, merged["notes"])))
    }

    /// The words of a container's command as a kubelet gives them to it, with its volumes in `folder`.
    fn container(
        &self,
        pod: &Value,
        container: &Value,
        settings: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<Vec<String>, Failure> {
        let mut environment = self.environment(container)?;
        environment.extend(settings.clone());
        let mut words = Vec::new();
        for word in list(&container["args"]) {
            let mut word = expanded(word, &environment)?;
            for mount in list(&container["volumeMounts"]) {
                let place =
                    self.volume(pod, mount, folder)?.join(expanded(&mount["subPathExpr"], &environment)?);
                fs::create_dir_all(&place)?;
                let path = mount["mountPath"].as_str().unwrap_or_default();
                for start in ["", "@"] {
                    if let Some(rest) = word.strip_prefix(start).and_then(|word| word.strip_prefix(path)) {
                        word = format!("{start}{}{rest}", place.display());
                        break;
                    }
                }
            }
            words.push(word);
        }
        Ok(words)
    }

    /// What the container finds, but for the map that is made when the load is started.
    fn environment(&self, container: &Value) -> Result<BTreeMap<String, String>, Failure> {
        let mut environment = BTreeMap::new();
        for source in list(&container["envFrom"]) {
            let name = source["configMapRef"]["name"].as_str().unwrap_or_default();
            if name != "thalweg-load-start" {
                let map = self.of("ConfigMap", name)?["data"].as_object().cloned().unwrap_or_default();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                environment.extend(map.iter().map(|(name, value)| (name.clone(), text(value))));
            }
        }
        for variable in list(&container["env"]) {
            let resource = variable["valueFrom"]["resourceFieldRef"]["resource"].as_str();
            let value = match resource {
                Some("limits.cpu") => &container["resources"]["limits"]["cpu"],
                _ => &variable["value"],
            };
            let (name, value) = (variable["name"].as_str().unwrap_or_default(), value.as_str());
            let value = value.ok_or_else(|| Failure::failed(format!("the variable {name} has no value")))?;
            environment.insert(name.to_owned(), value.to_owned());
        }
        Ok(environment)
    }

    /// A folder in the place of a volume, with the files of its ConfigMap.
    fn volume(&self, pod: &Value, mount: &Value, folder: &Path) -> Result<PathBuf, Failure> {
        let volumes = list(&pod["volumes"]);
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
        let volume =
            volume.ok_or_else(|| Failure::failed(format!("there is no volume {}", mount["name"])))?;
        let place = folder.join(volume["name"].as_str().unwrap_or_default());
        fs::create_dir_all(&place)?;
        if let Some(name) = volume["configMap"]["name"].as_str() {
            for (file, text) in self.of("ConfigMap", name)?["data"].as_object().into_iter().flatten() {
                fs::write(place.join(file), text.as_str().unwrap_or_default())?;
            }
        }
        Ok(place)
    }
}

/// What the page of a run does not say: of whom, by which schedule, how many calls, and the same p99 as its text.
/// Spaces are none here: the page binds figures to their units by others.
fn missing(page: &str, text: &str, run: &Value) -> Option<String> {
    let compact = |text: &str| text.split_whitespace().collect::<String>();
    let page = compact(page);
    let p99 =
        text.lines().find(|line| line.starts_with("latency ")).and_then(|line| line.split("p99 ").nth(1));
    let p99 = p99.and_then(|rest| rest.split(',').next()).unwrap_or("a latency in the text");
    let calls = run["ok"].as_u64().unwrap_or(0) + run["failed"].as_u64().unwrap_or(0);
    let schedule = run["schedule"].as_str().unwrap_or("a schedule");
    let said = [
        "<code>grpc.testing.TestService/UnaryCall</code>".to_owned(),
        format!("schedule <code>{schedule}</code>"),
        format!("{} of {calls} calls", run["failed"]),
        format!("p99 {p99}</h1>"),
    ];
    said.into_iter().find(|said| !page.contains(&compact(said)))
}

/// With the variables that it names.
fn expanded(text: &Value, environment: &BTreeMap<String, String>) -> Result<String, Failure> {
    let mut text = text.as_str().unwrap_or_default().to_owned();
    for (name, value) in environment {
        text = text.replace(&format!("$({name})"), value);
    }
    if text.contains("$(") {
        return Err(Failure::failed(format!("`{text}` names a variable that there is not")));
    }
    Ok(text)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::missing;

    #[test]
    fn a_page_says_calls_schedule_and_p99() {
        let page = "<h1>p50 1.00\u{a0}ms, p99 4.20\u{a0}ms</h1><code>grpc.testing.TestService/UnaryCall</code>, \
                    schedule <code>1000</code>; <p>0 of 1\u{202f}000 calls</p>";
        let text = "latency       mean 1.00 ms, p50 1.00 ms, p90 2.00 ms, p99 4.20 ms, p99.9 9.00 ms";
        let run = |ok: u64, schedule: &str| json!({"ok": ok, "failed": 0, "schedule": schedule});
        assert_eq!(missing(page, text, &run(1000, "1000")), None);
        assert_eq!(missing(page, text, &run(999, "1000")).as_deref(), Some("0 of 999 calls"));
        let other = missing(page, text, &run(1000, "2000"));
        assert_eq!(other.as_deref(), Some("schedule <code>2000</code>"));
        let later = missing(page, &text.replace("4.20", "4.30"), &run(1000, "1000"));
        assert_eq!(later.as_deref(), Some("p99 4.30 ms</h1>"));
    }
}
