//! Tables of `cargo xtask bench` and `cargo xtask costs`.

use serde_json::Value;

use super::table::markdown;
use crate::bench::table::grouped;
use crate::costs::Record;
use crate::figures::results::Results;
use crate::job::Failure;

/// The tables that a benchmark printed.
pub(super) struct Tables<'a> {
    name: &'a str,
    tables: &'a [Value],
}

impl<'a> Tables<'a> {
    pub(super) fn of(results: &'a Results, name: &'a str) -> Result<Self, Failure> {
        let tables = results.figures(name)?["tables"].as_array();
        let tables = tables.ok_or_else(|| Failure::failed(format!("{name}.json has no tables")))?;
        Ok(Self { name, tables })
    }

    fn heads(&self, table: usize) -> Vec<&'a str> {
        let heads = self.tables.get(table).and_then(|table| table["heads"].as_array());
        heads.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(super) fn rows(&self, table: usize) -> Vec<Vec<&'a str>> {
        let rows = self.tables.get(table).and_then(|table| table["rows"].as_array());
        let cells = |row: &'a Value| row.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        rows.into_iter().flatten().map(cells).collect()
    }

    /// The cell of this row and column, which there must be.
    pub(super) fn cell(&self, table: usize, row: &str, head: &str) -> Result<&'a str, Failure> {
        let column = self.heads(table).iter().position(|it| *it == head);
        let row_is_it = |cells: &Vec<&str>| cells.first() == Some(&row);
        let found =
            column.and_then(|column| self.rows(table).into_iter().find(row_is_it)?.get(column).copied());
        found.ok_or_else(|| {
            Failure::failed(format!("{}.json: table {table} has no `{head}` of `{row}`", self.name))
        })
    }

    /// The number with which a cell begins.
    pub(super) fn number(&self, table: usize, row: &str, head: &str) -> Result<f64, Failure> {
        let cell = self.cell(table, row, head)?;
        let digits: String = cell.chars().filter(|it| *it != ',').collect();
        let end = digits.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(digits.len());
        digits[..end]
            .parse()
            .map_err(|_| Failure::failed(format!("{}.json: `{cell}` is no number", self.name)))
    }

    /// All tables as they are, but for what each round found.
    fn as_they_are(&self, results: &Results) -> String {
        let all: Vec<usize> = (0..self.tables.len()).collect();
        self.those(&all, results)
    }

    /// Some tables as they are.
    fn those(&self, indices: &[usize], results: &Results) -> String {
        let mut parts = vec![results.caption(&[self.name])];
        for &index in indices {
            let Some(table) = self.tables.get(index) else { continue };
            if table["of_rounds"] == true {
                continue;
            }
            let rows: Vec<Vec<String>> =
                self.rows(index).iter().map(|row| row.iter().map(|cell| shown(cell)).collect()).collect();
            parts.push(table["title"].as_str().unwrap_or_default().to_owned());
            parts.push(markdown(&self.heads(index), &rows));
        }
        parts.join("\n\n")
    }
}

/// A stack's name as people write it.
pub(super) fn shown(cell: &str) -> String {
    if let Some(stack) = cell.strip_suffix(" TLS") {
        return format!("{} over TLS", shown(stack));
    }
    match cell {
        "thalweg" => "Thalweg".to_owned(),
        "thalweg busy" => "Thalweg, busy polling".to_owned(),
        "grpc-cpp" => "gRPC C++".to_owned(),
        other => other.to_owned(),
    }
}

pub(in crate::figures) fn instructions(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "instructions")?.as_they_are(results))
}

pub(in crate::figures) fn allocations(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "allocations")?.as_they_are(results))
}

pub(in crate::figures) fn memory(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "memory")?.as_they_are(results))
}

pub(in crate::figures) fn idle(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "idle")?.as_they_are(results))
}

pub(in crate::figures) fn tls(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "tls")?.as_they_are(results))
}

pub(in crate::figures) fn drop_in(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "drop-in")?.as_they_are(results))
}

/// What calls cost the generators, and whether they keep a rate.
pub(in crate::figures) fn generators(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "generators")?.those(&[0, 2, 3], results))
}

/// What the generators say of a server that stands still.
pub(in crate::figures) fn generators_stopped(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "generators")?.those(&[1], results))
}

pub(in crate::figures) fn flight(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "flight")?.as_they_are(results))
}

pub(in crate::figures) fn polling(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "polling")?.as_they_are(results))
}

pub(in crate::figures) fn beside(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "beside")?.as_they_are(results))
}

pub(in crate::figures) fn hoards(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "hoards")?.as_they_are(results))
}

/// A row for each attack, and of each stack what became of it.
pub(in crate::figures) fn attacks(results: &Results) -> Result<String, Failure> {
    let tables = Tables::of(results, "attacks")?;
    let stacks = results.figures("attacks")?["tables"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = |title: &str| title.replacen("this workspace", "Thalweg", 1);
    let titles: Vec<String> = stacks.iter().filter_map(|table| table["title"].as_str().map(ours)).collect();
    // "tonic 0.14.9: attacks of …"
    let stack = |title: &String| title.split_once(": ").map_or("", |(stack, _)| stack).to_owned();
    let mut rows = Vec::new();
    for row in tables.rows(0) {
        let Some(attack) = row.first() else { continue };
        let mut cells = vec![format!("`{attack}`")];
        for table in 0..titles.len() {
            let cell = |head| tables.cell(table, attack, head);
            cells.push(match (cell("cut"), cell("server's CPU, s")) {
                (Ok("not run"), _) => "–".to_owned(),
                (_, Ok("–")) => "failed".to_owned(),
                _ => format!(
                    "{}; {} s; {} MB; {}",
                    cut_after(cell("cut")?, cell("MB sent")?),
                    cell("server's CPU, s")?,
                    cell("memory, MB")?,
                    cell("honest p99")?
                ),
            });
        }
        rows.push(cells);
    }
    let heads: Vec<String> = ["attack".to_owned()].into_iter().chain(titles.iter().map(stack)).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let titles: Vec<String> = titles.iter().map(|title| format!("- {title}.")).collect();
    Ok(format!("{}\n\n{}\n\n{}", results.caption(&["attacks"]), titles.join("\n"), markdown(&heads, &rows)))
}

/// `0.03 s, GOAWAY EnhanceYourCalm`, with how much was sent until then.
fn cut_after(cut: &str, sent_mb: &str) -> String {
    match cut.split_once(", ") {
        Some((after, how)) => format!("{after}, {sent_mb} MB, {how}"),
        None => format!("{cut}, {sent_mb} MB"),
    }
}

pub(in crate::figures) fn same(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "same")?.as_they_are(results))
}

pub(in crate::figures) fn slowed(results: &Results) -> Result<String, Failure> {
    Ok(Tables::of(results, "slowed")?.as_they_are(results))
}

/// What `xtask/costs.json` has: the tests hold the code to it, so it is of this very commit.
pub(in crate::figures) fn costs(_: &Results) -> Result<String, Failure> {
    let record = Record::read()?;
    let mut rows: Vec<Vec<String>> = Vec::new();
    for cost in &record.costs {
        let cells = [grouped(cost.instructions), format!("{:.2}", cost.allocations)];
        match rows.last_mut() {
            Some(row) if row[0] == format!("`{}`", cost.case) => row.extend(cells),
            _ => rows.push([format!("`{}`", cost.case)].into_iter().chain(cells).collect()),
        }
    }
    let heads = ["case", "server: instructions", "allocations", "client: instructions", "allocations"];
    Ok(format!(
        "`cargo xtask costs`; held to `xtask/costs.json` by every run of the tests; {}, {}, {}.\n\n{}",
        record.toolchain.rustc,
        record.toolchain.libc,
        record.toolchain.processor,
        markdown(&heads, &rows)
    ))
}
