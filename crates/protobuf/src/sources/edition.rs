//! Editions, including proto2 and proto3.

/// The number of an edition in `google.protobuf.Edition`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Edition(pub(super) i32);

impl Edition {
    pub(super) const PROTO2: Edition = Edition(998);
    pub(super) const PROTO3: Edition = Edition(999);
    pub(super) const E2023: Edition = Edition(1000);
    pub(super) const E2024: Edition = Edition(1001);
    pub(super) const E2026: Edition = Edition(1002);

    /// Returns its name in `.proto` files.
    pub(super) fn name(self) -> String {
        match self.0 {
            998 => "proto2".to_owned(),
            999 => "proto3".to_owned(),
            1000 => "2023".to_owned(),
            1001 => "2024".to_owned(),
            1002 => "2026".to_owned(),
            number => number.to_string(),
        }
    }

    /// Whether it is proto2 or proto3.
    pub(super) fn is_legacy(self) -> bool {
        self < Edition::E2023
    }
}

impl Default for Edition {
    fn default() -> Self {
        Edition::PROTO2
    }
}
