//! File descriptor limit: each end of a connection needs a descriptor.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit, which child processes inherit, to the hard limit, and returns it.
pub fn raise() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    #[test]
    fn soft_limit_is_raised_to_hard_limit() {
        let raised = super::raise().unwrap();
        let (soft, hard) = super::getrlimit(super::Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!((soft, hard), (raised, raised));
    }
}
