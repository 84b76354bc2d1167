//! Section with the run's settings and its cost to the client.

use maud::{Markup, html};
use thalweg_measure::cpu_time::CpuTime;
use thalweg_measure::figures::{bound, time};
use thalweg_measure::wording::counted;

use crate::run::LoadRun;

pub(super) fn section(run: &LoadRun) -> Markup {
    html! {
        div.columns {
            (list(&driven(run)))
            (list(&cost(run)))
        }
    }
}

fn list(facts: &[(&str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts { dt { (name) } dd { (bound(value)) } }
        }
    }
}

fn driven(run: &LoadRun) -> Vec<(&'static str, String)> {
    let established = run.connections_established.map(|number| format!(", {number} established"));
    let mut facts = Vec::from_iter(run.name.clone().map(|name| ("Name", name)));
    let tags: Vec<String> = run.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    facts.extend((!tags.is_empty()).then(|| ("Tags", tags.join(", "))));
    facts.extend([
        ("Method", format!("{} ({})", run.method, run.kind)),
        ("Targets", run.targets.join(", ")),
        ("Loop", run.loop_kind.clone()),
    ]);
    let schedule =
        [("Schedule", &run.schedule), ("Arrivals", &run.spacing), ("Active workers", &run.workers)];
    facts.extend(schedule.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    facts.extend(run.share.map(|share| ("Part", share.to_string())));
    let in_flight =
        if run.is_open() { format!("up to {}", run.in_flight) } else { run.in_flight.to_string() };
    facts.extend([
        ("In flight", in_flight),
        ("Connections", run.requested_connections() + &established.unwrap_or_default()),
        ("Started", run.started.clone()),
        ("Ended", run.ended.clone()),
    ]);
    let attempts = run.attempts.text();
    facts.extend((!attempts.is_empty()).then_some(("Further attempts", attempts)));
    facts
}

fn cost(run: &LoadRun) -> Vec<(&'static str, String)> {
    let cpu = |cpu: &CpuTime| format!("{} user, {} system", time(cpu.user_ns), time(cpu.system_ns));
    let mut facts = vec![
        ("Warm-up", time(run.warmup_ns as f64)),
        ("Measured", time(run.duration_ns as f64)),
        ("Drain", time(run.drain_ns as f64)),
        ("Client CPU", cpu(&run.client_cpu)),
    ];
    if let Some(per_call) = &run.client_cpu_per_call {
        facts.push(("Client CPU per call", cpu(per_call)));
    }
    if let Some(machine) = &run.machine {
        let processors = counted(machine.cores as u64, "processor");
        facts.push(("Client’s machine", format!("{}, {processors}, {}", machine.cpu, machine.kernel)));
        facts.push(("Load average before", format!("{:.2}", machine.load_average)));
    }
    if run.is_open() {
        facts.push(("Timer spin", time(run.spun_ns as f64)));
    }
    facts
}
