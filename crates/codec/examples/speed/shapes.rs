//! The shapes in prost's generated form, with seeded random values.

use std::collections::BTreeMap;

use prost::{Enumeration, Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct SmallFlat {
    #[prost(int64, tag = "1")]
    pub request_id: i64,
    #[prost(int32, tag = "2")]
    pub status_code: i32,
    #[prost(string, tag = "3")]
    pub message: String,
    #[prost(double, tag = "4")]
    pub latency_ms: f64,
    #[prost(bool, tag = "5")]
    pub cached: bool,
    #[prost(string, tag = "6")]
    pub trace_id: String,
    #[prost(int32, optional, tag = "7")]
    pub retry_after_seconds: Option<i32>,
    #[prost(string, repeated, tag = "8")]
    pub tags: Vec<String>,
    #[prost(string, tag = "9")]
    pub region: String,
    #[prost(uint64, tag = "10")]
    pub bytes_sent: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogRecord {
    #[prost(fixed64, tag = "1")]
    pub timestamp_nanos: u64,
    #[prost(string, tag = "2")]
    pub service: String,
    #[prost(string, tag = "3")]
    pub instance: String,
    #[prost(enumeration = "Severity", tag = "4")]
    pub severity: i32,
    #[prost(string, tag = "5")]
    pub message: String,
    #[prost(btree_map = "string, string", tag = "6")]
    pub labels: BTreeMap<String, String>,
    #[prost(uint32, tag = "7")]
    pub line: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Enumeration)]
#[repr(i32)]
pub enum Severity {
    Unspecified = 0,
    Info = 1,
    Warning = 2,
    Error = 3,
}

#[derive(Clone, PartialEq, Message)]
pub struct Analytics {
    #[prost(string, tag = "1")]
    pub event_id: String,
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
    #[prost(string, tag = "3")]
    pub user_id: String,
    #[prost(message, repeated, tag = "4")]
    pub properties: Vec<Property>,
    #[prost(message, repeated, tag = "5")]
    pub sections: Vec<Section>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Property {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(oneof = "PropertyValue", tags = "2, 3, 4, 5")]
    pub value: Option<PropertyValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum PropertyValue {
    #[prost(string, tag = "2")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(double, tag = "4")]
    Ratio(f64),
    #[prost(bool, tag = "5")]
    Flag(bool),
}

#[derive(Clone, PartialEq, Message)]
pub struct Section {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint32, tag = "2")]
    pub depth: u32,
    #[prost(message, repeated, tag = "3")]
    pub properties: Vec<Property>,
    #[prost(message, repeated, tag = "4")]
    pub sections: Vec<Section>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Arrays {
    #[prost(int32, repeated, tag = "1")]
    pub deltas: Vec<i32>,
    #[prost(sint64, repeated, tag = "2")]
    pub offsets: Vec<i64>,
    #[prost(uint64, repeated, tag = "3")]
    pub ids: Vec<u64>,
    #[prost(double, repeated, tag = "4")]
    pub samples: Vec<f64>,
    #[prost(float, repeated, tag = "5")]
    pub weights: Vec<f32>,
    #[prost(bool, repeated, tag = "6")]
    pub flags: Vec<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Series {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(float, repeated, tag = "2")]
    pub embedding: Vec<f32>,
    #[prost(double, repeated, tag = "3")]
    pub values: Vec<f64>,
    #[prost(fixed64, repeated, tag = "4")]
    pub timestamps: Vec<u64>,
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// Returns a number of up to `bits` bits, with all lengths equally likely.
    pub fn bits(&mut self, bits: u64) -> u64 {
        let shift = 63 - self.below(bits);
        self.number() >> shift
    }

    pub fn word(&mut self, len: u64) -> String {
        (0..len).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }

    /// Returns words with a total of `len` bytes or slightly more.
    fn sentence(&mut self, len: usize) -> String {
        let mut text = String::new();
        while text.len() < len {
            let len = 3 + self.below(7);
            text.push_str(&self.word(len));
            text.push(' ');
        }
        text
    }
}

pub trait Shape: Message + Default + PartialEq + 'static {
    /// Name in `proto/speed.proto`.
    const NAME: &'static str;

    fn random(random: &mut Random) -> Self;
}

impl Shape for SmallFlat {
    const NAME: &'static str = "SmallFlat";

    fn random(random: &mut Random) -> SmallFlat {
        SmallFlat {
            request_id: random.bits(62) as i64,
            status_code: 200 + random.below(300) as i32,
            message: random.sentence(70),
            latency_ms: random.below(1_000_000) as f64 / 1000.0,
            cached: random.below(2) == 1,
            trace_id: random.word(32),
            retry_after_seconds: (random.below(2) == 1).then(|| random.below(3600) as i32),
            tags: (0..4)
                .map(|_| {
                    let len = 6 + random.below(10);
                    random.word(len)
                })
                .collect(),
            region: "eu-central-1".to_owned(),
            bytes_sent: random.bits(40),
        }
    }
}

impl Shape for LogRecord {
    const NAME: &'static str = "LogRecord";

    fn random(random: &mut Random) -> LogRecord {
        LogRecord {
            timestamp_nanos: random.number(),
            service: random.word(10),
            instance: random.word(14),
            severity: random.below(4) as i32,
            message: random.sentence(40),
            labels: (0..=random.below(2)).map(|_| (random.word(5), random.word(8))).collect(),
            line: random.below(5000) as u32,
        }
    }
}

fn property(random: &mut Random) -> Property {
    let len = 4 + random.below(8);
    Property {
        key: random.word(len),
        value: Some(match random.below(4) {
            0 => PropertyValue::Text(random.sentence(12)),
            1 => PropertyValue::Number(random.bits(40) as i64),
            2 => PropertyValue::Ratio(random.below(1000) as f64 / 1000.0),
            _ => PropertyValue::Flag(random.below(2) == 1),
        }),
    }
}

fn section(random: &mut Random, depth: u32) -> Section {
    Section {
        name: random.word(8),
        depth,
        properties: (0..3).map(|_| property(random)).collect(),
        sections: if depth == 3 { Vec::new() } else { vec![section(random, depth + 1)] },
    }
}

impl Shape for Analytics {
    const NAME: &'static str = "Analytics";

    fn random(random: &mut Random) -> Analytics {
        Analytics {
            event_id: random.word(32),
            timestamp: random.bits(50) as i64,
            user_id: random.word(16),
            properties: (0..6).map(|_| property(random)).collect(),
            sections: (0..2).map(|_| section(random, 1)).collect(),
        }
    }
}

impl Shape for Arrays {
    const NAME: &'static str = "Arrays";

    fn random(random: &mut Random) -> Arrays {
        Arrays {
            deltas: (0..400).map(|_| random.bits(14) as i32).collect(),
            offsets: (0..200).map(|_| random.bits(24) as i64 - (1 << 22)).collect(),
            ids: (0..150).map(|_| random.bits(40)).collect(),
            samples: (0..100).map(|_| random.below(1_000_000) as f64 / 1000.0).collect(),
            weights: (0..100).map(|_| random.below(1000) as f32 / 1000.0).collect(),
            flags: (0..100).map(|_| random.below(2) == 1).collect(),
        }
    }
}

impl Shape for Series {
    const NAME: &'static str = "Series";

    fn random(random: &mut Random) -> Series {
        const SECOND_NANOS: u64 = 1_000_000_000;
        let start = 1_750_000_000 * SECOND_NANOS + random.below(1 << 53);
        Series {
            id: random.word(16),
            embedding: unit_vector(random, 768),
            values: (0..64).map(|_| random.below(1_000_000) as f64 / 1000.0).collect(),
            timestamps: (0..64).map(|at| start + at * SECOND_NANOS + random.below(1_000_000)).collect(),
        }
    }
}

/// Returns a vector of length 1 in a random direction, with all digits, like a model's output.
fn unit_vector(random: &mut Random, components: usize) -> Vec<f32> {
    // The sum of four uniform values is approximately normal.
    let mut component = || (0..4).map(|_| random.below(2001) as f32 - 1000.0).sum::<f32>();
    let vector: Vec<f32> = (0..components).map(|_| component()).collect();
    let length = vector.iter().map(|component| component * component).sum::<f32>().sqrt();
    vector.iter().map(|component| component / length).collect()
}
