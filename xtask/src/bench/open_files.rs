//! How many files this program and those that it starts may have open.

use std::fs;
use std::process::Command;

use crate::job::Failure;

/// Raises the soft limit to `count` where it is lower.
///
/// # Errors
///
/// When the hard limit is lower: that is the machine's, and only its owner can raise it.
pub(super) fn allow(count: usize) -> Result<(), Failure> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let Some((soft, hard)) = parse(&limits) else {
        return Err(Failure::failed("/proc/self/limits tells no `Max open files`"));
    };
    if soft >= count {
        return Ok(());
    }
    if hard < count {
        let raise = format!("raise it as root: `prlimit --pid $$ --nofile={count}:{count}`");
        return Err(Failure::missing(format!("{count} open files: the hard limit is {hard}; {raise}")));
    }
    let limit = format!("--nofile={count}:");
    let raised = Command::new("prlimit").args(["--pid", &std::process::id().to_string(), &limit]).status()?;
    if raised.success() { Ok(()) } else { Err(Failure::failed(format!("`prlimit {limit}` failed"))) }
}

/// The soft and the hard limit in the line `Max open files  1024  524288  files`.
fn parse(limits: &str) -> Option<(usize, usize)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace();
    let mut limit = || match words.next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    };
    Some((limit()?, limit()?))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn both_limits_are_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(parse(text), Some((1024, 524_288)));
        assert_eq!(parse("Max open files  1024  unlimited  files"), Some((1024, usize::MAX)));
        assert_eq!(parse("Max processes  1  1  processes"), None);
    }
}
