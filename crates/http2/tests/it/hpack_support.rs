//! Seeded random header lists.
use thalweg_http2::{FieldList, Indexing};

/// `splitmix64`: small, seeded, portable.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns true once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

const NAMES: [&str; 14] = [
    ":method",
    ":path",
    ":status",
    ":authority",
    ":scheme",
    "accept-encoding",
    "content-type",
    "user-agent",
    "te",
    "grpc-timeout",
    "grpc-status",
    "grpc-encoding",
    "www-authenticate",
    "x-request-id",
];

const VALUES: [&str; 12] = [
    "",
    "POST",
    "https",
    "200",
    "/",
    "gzip, deflate",
    "application/grpc",
    "trailers",
    "grpc-rust-thalweg/0.1.0",
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "99m",
    "0",
];

/// Returns a list of up to 11 fields. Most names and values come from small pools, so that tables have hits. Some are
/// random bytes, and a few are longer than a table.
pub(crate) fn random_list(random: &mut Random) -> FieldList {
    let mut list = FieldList::new();
    for _ in 0..random.below(12) {
        let name = match random.below(10) {
            0 => {
                let len = random.below(30);
                random.bytes(len)
            }
            1 => format!("x-{}", random.below(200)).into_bytes(),
            _ => random.pick(&NAMES).as_bytes().to_vec(),
        };
        let value = match random.below(20) {
            0..3 => {
                let len = random.below(60);
                random.bytes(len)
            }
            3..8 => format!("/package.Service/Method{}", random.below(100)).into_bytes(),
            8 if random.one_in(10) => {
                let len = random.below(6000);
                random.bytes(len)
            }
            _ => random.pick(&VALUES).as_bytes().to_vec(),
        };
        let indexing =
            *random.pick(&[&Indexing::Insert, &Indexing::Insert, &Indexing::Literal, &Indexing::Never]);
        list.push(&name, &value, indexing);
    }
    list
}

/// Checks that `received` is the decoded form of `sent`. Ignores whether a field entered the table, except for fields
/// that must never do so.
pub(crate) fn assert_received<'a>(
    received: &FieldList,
    sent: impl IntoIterator<Item = &'a FieldList>,
    what: &str,
) {
    let strip = |list: &FieldList| -> Vec<(Vec<u8>, Vec<u8>, bool)> {
        list.iter()
            .map(|field| (field.name.to_vec(), field.value.to_vec(), field.indexing == Indexing::Never))
            .collect()
    };
    let sent: Vec<_> = sent.into_iter().flat_map(strip).collect();
    assert_eq!(strip(received), sent, "{what}");
}
