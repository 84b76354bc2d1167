//! Parsed values of recent header blocks: [`HeaderCache`].

/// Values by the number that the protocol assigns to identical header blocks of a connection. Keeps one value for each
/// index `id % N`.
///
/// Peers send a few different header blocks in turn, so most calls parse no fields.
#[derive(Debug)]
pub(crate) struct HeaderCache<T, const N: usize>([Option<(u64, T)>; N]);

impl<T, const N: usize> HeaderCache<T, N> {
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<&T> {
        match &self.0[id as usize % N] {
            Some((known, value)) if *known == id => Some(value),
            _ => None,
        }
    }

    pub(crate) fn insert(&mut self, id: u64, value: T) {
        self.0[id as usize % N] = Some((id, value));
    }
}

impl<T, const N: usize> Default for HeaderCache<T, N> {
    fn default() -> Self {
        Self([const { None }; N])
    }
}

#[cfg(test)]
mod tests {
    use super::HeaderCache;

    #[test]
    fn later_block_replaces_an_earlier_one() {
        let mut cache = HeaderCache::<_, 4>::default();
        for id in 3..=7 {
            cache.insert(id, id.to_string());
        }
        let known = [3, 4, 5, 6, 7, 8].map(|id| cache.get(id).map(String::as_str));
        assert_eq!(known, [None, Some("4"), Some("5"), Some("6"), Some("7"), None]);
    }
}
