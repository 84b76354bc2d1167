use super::costs::*;
use super::*;
#[test]
fn explore() {
    let (mut over5, mut over10, mut many, mut total) = (0, 0, 0, 0);
    for (name, costs) in [("ours", OURS), ("grpc", GRPC_CPP)] {
        for (c, s) in [(1, 1), (2, 2), (4, 4), (16, 16), (16, 2)] {
            for rtt in [10u64, 50, 200, 5000] {
                for n in [1usize, 4, 16, 64, 256, 1024] {
                    let w = World {
                        client_cores: c,
                        server_cores: s,
                        round_trip: Duration::from_micros(rtt),
                        costs,
                        load: Load::Closed { in_flight: n },
                    };
                    let rates: Vec<f64> = (1..=n.min(16)).map(|l| run::fixed_rate(w, l)).collect();
                    let best = rates.iter().cloned().fold(0.0, f64::max);
                    let b = rates.iter().position(|r| *r >= 0.98 * best).unwrap() + 1;
                    let mut a = run::Adaptive::new(w);
                    a.run_until_quiet(Duration::from_millis(1000), Duration::from_secs(6));
                    let l = a.model.lanes_taking();
                    let mean = a.rate_of_last(Duration::from_millis(900));
                    let last = a.decisions.last().map_or(0, |d| d.0.as_millis());
                    let ratio = mean / best;
                    total += 1;
                    if ratio < 0.95 {
                        over5 += 1;
                    }
                    if ratio < 0.90 {
                        over10 += 1;
                    }
                    if l > b + 1 {
                        many += 1;
                    }
                    let flag = if ratio < 0.9 {
                        "!!"
                    } else if ratio < 0.95 {
                        "! "
                    } else {
                        "  "
                    };
                    let flag2 = if l > b + 1 || (rtt >= 5000 && n <= 256 && l > 2) { "+" } else { " " };
                    let path: Vec<String> = a.decisions.iter().map(|d| format!("{}", d.1)).collect();
                    println!(
                        "{name} {c}:{s} rtt {rtt:5} n {n:4} best {b:2} {best:8.0} adaptive {l:2} {ratio:.3} {flag}{flag2} last {last} {}",
                        path.join(",")
                    );
                }
            }
        }
    }
    println!("total {total} over5 {over5} over10 {over10} many {many}");
}
#[test]
fn trace() {
    for (costs, c, s, rtt, n) in [
        (GRPC_CPP, 4, 4, 200, 16),
        (OURS, 16, 2, 10, 16),
        (OURS, 2, 2, 10, 16),
        (GRPC_CPP, 16, 16, 10, 16),
        (GRPC_CPP, 16, 16, 50, 16),
        (OURS, 4, 4, 10, 16),
    ] {
        let w = World {
            client_cores: c,
            server_cores: s,
            round_trip: Duration::from_micros(rtt),
            costs,
            load: Load::Closed { in_flight: n },
        };
        let rates: Vec<String> = (1..=n.min(16)).map(|l| format!("{:.0}", run::fixed_rate(w, l))).collect();
        println!("== {c}:{s} {rtt} {n}\n{}", rates.join(" "));
        let mut a = run::Adaptive::new(w);
        a.run_until_quiet(Duration::from_millis(1000), Duration::from_secs(6));
        for d in &a.decisions {
            println!("{:?} {} {}", d.0, d.1, d.2);
        }
        let r: Vec<String> = a.rates.iter().map(|r| format!("{:.0}", r / 1000.0)).collect();
        println!("{}", r.join(" "));
    }
}
