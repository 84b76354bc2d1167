//! Generates messages from a seed: the same seed gives the same messages on every machine.

use crate::plain::{
    Address, Campaign, Device, Event, Level, LogRecord, Order, Person, Samples, SeveralData, Visit, Visitor,
};

/// Number of different messages of a kind: enough for varied branches, few enough for the CPU cache.
const MESSAGES: usize = 64;
const STRINGS: usize = 5000;
const STRING_BYTES: usize = 20;
/// 2026-01-01, in ms since 1970.
const START_MS: i64 = 1_767_225_600_000;

/// SplitMix64: reproducible from the seed.
struct Random(u64);

impl Random {
    /// Creates a generator for one kind, so that kinds do not affect each other.
    fn for_kind(seed: u64, kind: u64) -> Self {
        Self(seed.wrapping_add(kind << 32))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a value below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, choice: &[T]) -> T {
        choice[self.below(choice.len() as u64) as usize]
    }

    /// Returns a number with four decimals, which every codec restores exactly.
    fn decimal(&mut self, below: u64) -> f64 {
        self.below(below * 10_000) as f64 / 10_000.0
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(self.pick(alphabet))).collect()
    }

    fn hex(&mut self, length: usize) -> String {
        self.text(b"0123456789abcdef", length)
    }

    fn letters(&mut self, length: usize) -> String {
        self.text(b"abcdefghijklmnopqrstuvwxyz", length)
    }

    /// Returns words of two to nine letters, separated by spaces.
    fn sentence(&mut self, words: u64) -> String {
        let word = |random: &mut Self| {
            let length = 2 + random.below(8) as usize;
            random.letters(length)
        };
        (0..words).map(|_| word(self)).collect::<Vec<_>>().join(" ")
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.hex(length)).join("-")
    }
}

fn generate_messages<T>(make: impl Fn(&mut Random) -> T, mut random: Random) -> Vec<T> {
    (0..MESSAGES).map(|_| make(&mut random)).collect()
}

/// Returns a person with all fields.
pub fn person_full() -> Vec<Person> {
    let hobbies = ["swimming", "sliding", "standing in the cold"].map(str::to_owned).to_vec();
    let address = Address { city: "Port Lockroy".to_owned(), zip_code: "BFPO 0".to_owned() };
    vec![Person { hobbies: Some(hobbies), address: Some(address), ..person_sparse().remove(0) }]
}

/// Returns a person with two of four fields: 17 bytes of Protobuf, 63 of JSON.
pub fn person_sparse() -> Vec<Person> {
    vec![Person { name: "polar penguin".to_owned(), age: 20, hobbies: None, address: None }]
}

/// Returns a field of each type, and 5,000 strings of 20 characters.
pub fn several_data(seed: u64) -> Vec<SeveralData> {
    let random = &mut Random::for_kind(seed, 1);
    vec![SeveralData {
        a_float: 3.25,
        a_double: random.decimal(1_000_000),
        an_int32: -(random.below(1 << 30) as i32),
        an_int64: random.below(1 << 60).cast_signed(),
        a_bool: true,
        a_string: random.sentence(6),
        strings: (0..STRINGS).map(|_| random.letters(STRING_BYTES)).collect(),
    }]
}

/// Returns flat records.
pub fn orders(seed: u64) -> Vec<Order> {
    let order = |random: &mut Random| {
        let created_at = START_MS + random.below(1 << 34).cast_signed();
        let (first, last) = (random.letters(6), random.letters(9));
        Order {
            id: random.uuid(),
            email: format!("{first}.{last}@example.org"),
            customer: format!("{first} {last}"),
            created_at,
            updated_at: created_at + random.below(1 << 30).cast_signed(),
            quantity: 1 + random.below(12) as u32,
            price: random.decimal(1000),
            currency: random.pick(&["EUR", "USD", "GBP", "JPY"]).to_owned(),
            paid: random.below(4) > 0,
            gift: random.below(8) == 0,
            note: random.sentence(16),
            coupon: if random.below(2) == 0 { random.hex(10) } else { String::new() },
            warehouse: random.below(300) as u32,
        }
    };
    generate_messages(order, Random::for_kind(seed, 2))
}

/// Returns log records.
pub fn log_records(seed: u64) -> Vec<LogRecord> {
    let record = |random: &mut Random| LogRecord {
        time_ns: START_MS as u64 * 1_000_000 + random.below(1 << 53),
        level: random.pick(&[
            Level::Trace,
            Level::Debug,
            Level::Info,
            Level::Info,
            Level::Warn,
            Level::Error,
        ]),
        service: random.pick(&["checkout", "inventory", "payments", "gateway"]).to_owned(),
        message: random.sentence(10),
        trace: random.hex(32),
        status: random.pick(&[200, 200, 200, 204, 404, 500]),
        took_ns: random.below(1 << 28),
    };
    generate_messages(record, Random::for_kind(seed, 3))
}

/// Returns nested messages with maps.
pub fn visits(seed: u64) -> Vec<Visit> {
    let event = |random: &mut Random| Event {
        name: random.pick(&["view", "click", "scroll", "add_to_cart", "search"]).to_owned(),
        time_ms: START_MS + random.below(1 << 34).cast_signed(),
        page: format!("/{}/{}", random.letters(7), random.letters(12)),
        value: random.decimal(500),
        labels: [("variant", 4), ("position", 6), ("list", 9)]
            .map(|(name, length)| (name.to_owned(), random.letters(length)))
            .into(),
    };
    let visit = |random: &mut Random| Visit {
        session: random.uuid(),
        visitor: Some(Visitor {
            id: random.next() >> 8,
            country: random.pick(&["AT", "DE", "FR", "IT", "NZ"]).to_owned(),
            device: Some(Device {
                system: random.pick(&["Android 16", "iOS 19", "Linux", "Windows 11"]).to_owned(),
                browser: random.pick(&["Firefox 142", "Chrome 139", "Safari 19"]).to_owned(),
                width: random.pick(&[390, 1280, 1920, 2560]),
                height: random.pick(&[844, 720, 1080, 1440]),
            }),
        }),
        campaign: (random.below(2) == 0).then(|| Campaign {
            source: random.pick(&["newsletter", "search", "partner"]).to_owned(),
            medium: "cpc".to_owned(),
            name: random.sentence(2),
        }),
        events: (0..5).map(|_| event(random)).collect(),
    };
    generate_messages(visit, Random::for_kind(seed, 4))
}

/// Returns arrays of numbers.
pub fn samples(seed: u64) -> Vec<Samples> {
    const ROW_LEN: usize = 160;
    let samples = |random: &mut Random| Samples {
        sensor: random.uuid(),
        begin_ms: START_MS + random.below(1 << 34).cast_signed(),
        deltas: (0..ROW_LEN).map(|_| random.below(2001) as i32 - 1000).collect(),
        values: (0..ROW_LEN).map(|_| random.decimal(1000)).collect(),
        // Multiples of 1/16, which a float represents exactly.
        weights: (0..ROW_LEN).map(|_| random.below(16_000) as f32 / 16.0).collect(),
        counts: (0..ROW_LEN)
            .map(|_| {
                let bits = 1 + random.below(48);
                random.below(1 << bits)
            })
            .collect(),
        flags: (0..ROW_LEN).map(|_| random.below(2) == 0).collect(),
    };
    generate_messages(samples, Random::for_kind(seed, 5))
}
