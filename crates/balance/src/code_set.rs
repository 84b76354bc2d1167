//! Sets of status codes.

use thalweg_core::Code;

/// A set of status codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSet(u32);

impl CodeSet {
    /// Returns whether the set contains `code`.
    pub fn contains(self, code: Code) -> bool {
        self.0 & (1 << code.number()) != 0
    }

    /// Adds `code`.
    pub fn insert(&mut self, code: Code) {
        self.0 |= 1 << code.number();
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Collects codes, also tonic's: of any crate that numbers them as gRPC does. Other numbers are UNKNOWN.
impl<C: Into<i32>> FromIterator<C> for CodeSet {
    fn from_iter<I: IntoIterator<Item = C>>(codes: I) -> Self {
        let mut set = Self::default();
        for code in codes {
            set.insert(Code::from_i32(code.into()));
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_contains_what_was_inserted() {
        let contained = |set: CodeSet| -> Vec<Code> {
            Code::ALL.into_iter().filter(|&code| set.contains(code)).collect()
        };
        let set: CodeSet = [Code::Unavailable, Code::Cancelled].into_iter().collect();
        assert_eq!(contained(set), [Code::Cancelled, Code::Unavailable]);
        assert!(CodeSet::default().is_empty() && !set.is_empty());
        assert_eq!(contained([1, 17, -1].into_iter().collect()), [Code::Cancelled, Code::Unknown]);
    }
}
