//! Free space below the target directory. A run that fills the disk fails elsewhere and with misleading messages.

use std::process::Command;

use crate::workspace;

/// Free bytes reported by `df`; `None` if it reports none.
pub(super) fn free() -> Option<u64> {
    let df = Command::new("df").args(["--block-size=1", "--output=avail"]).arg(workspace::target()).output();
    last_number(&String::from_utf8_lossy(&df.ok()?.stdout))
}

fn last_number(table: &str) -> Option<u64> {
    table.lines().last()?.trim().parse().ok()
}

/// Formats as `12.3 GB`.
pub(super) fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn df_output_is_parsed() {
        assert_eq!(last_number("      Avail\n85322407936\n"), Some(85_322_407_936));
        assert_eq!(last_number("df: /nowhere: No such file or directory"), None);
        assert_eq!(last_number(""), None);
    }

    #[test]
    fn free_disk_space_is_known() {
        // Cargo created the target directory for this test.
        assert!(free().is_some_and(|bytes| bytes > 0), "{:?}", free());
    }
}
