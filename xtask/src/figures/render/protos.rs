//! Our `.proto` front end beside protoc.

use super::table::markdown;
use crate::bench::table::grouped;
use crate::figures::results::Results;
use crate::job::Failure;
use crate::protos::{is_equal, row};

pub(in crate::figures) fn protos(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("protos")?;
    let trees = figures["trees"].as_array().cloned().unwrap_or_default();
    let mut sum = [0; 4];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for tree in &trees {
        let numbers = row(tree);
        for (sum, number) in sum.iter_mut().zip(numbers) {
            *sum += number;
        }
        rows.push(cells(tree["name"].as_str().unwrap_or_default(), numbers, is_equal(tree)));
    }
    rows.push(cells("all", sum, trees.iter().all(is_equal)));
    let heads = [
        "tree",
        "files",
        "equal to protoc",
        "with source info",
        "refused by both at the same place",
        "all alike",
    ];
    let protoc = figures["protoc"].as_str().unwrap_or_default();
    let caption = results.caption(&["protos"]);
    Ok(format!("{caption}\n\nprotoc {protoc}:\n\n{}", markdown(&heads, &rows)))
}

fn cells(name: &str, numbers: [u64; 4], is_equal: bool) -> Vec<String> {
    let numbers = numbers.map(|number: u64| grouped(number as f64));
    let verdict = if is_equal { "yes" } else { "**no**" };
    [vec![name.to_owned()], numbers.to_vec(), vec![verdict.to_owned()]].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::protos;
    use crate::figures::results::Results;

    #[test]
    fn a_tree_is_a_row_and_all_are_the_last() {
        let tree = |name: &str, verdicts: Value| json!({"name": name, "files": 3, "verdicts": verdicts});
        let trees = [
            tree("a", json!({"equal with source info": 2, "refused": 1})),
            tree("b", json!({"equal with source info": 1, "equal": 1, "verdict": 1})),
        ];
        let file = json!({"figures": {"protoc": "36.2", "trees": trees}});
        let text = protos(&Results::of([("protos", file)])).expect("a table");
        let expected =
            "| a | 3 | 2 | 2 | 1 | yes |\n| b | 3 | 2 | 1 | 0 | **no** |\n| all | 6 | 4 | 3 | 1 | **no** |";
        assert!(text.ends_with(expected), "{text}");
    }
}
