//! JSON of four shapes of messages, both ways, beside prost-reflect: `taskset -c 0 cargo run --release -p
//! thalweg-protobuf --example json_speed`.
//!
//! Each round lets one work for a while and then the other; what is shown are medians over the rounds, and the median
//! of the rounds' ratios.

use std::hint::black_box;
use std::time::{Duration, Instant};

use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};
use thalweg_protobuf::json::{ParseOptions, PrintOptions};
use thalweg_protobuf::{MessageType, Schema, json, msgpack};

/// Each has so many turns of so long.
const ROUNDS: usize = 41;
const TURN: Duration = Duration::from_millis(5);

fn main() {
    let set = descriptor_set();
    let schema = Schema::from_descriptor_set(&set).expect("a schema");
    let pool = DescriptorPool::decode(&*set).expect("a pool");
    println!(
        "{:<10} {:>6} {:>6} | {:>25} | {:>25} | {:>8} {:>8}",
        "shape",
        "wire B",
        "JSON B",
        "wire to JSON MB/s (ratio)",
        "JSON to wire MB/s (ratio)",
        "to mp",
        "from mp"
    );
    for (name, value) in
        [("Account", account()), ("LogRecord", log_record()), ("Visit", visit()), ("Samples", samples())]
    {
        let full_name = format!("shapes.{name}");
        let ours = schema.message(&full_name).expect("it is in the file");
        let theirs = pool.get_message_by_name(&full_name).expect("it is in the file");
        Shape::new(ours, theirs, &value).measure(name);
    }
}

fn descriptor_set() -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/json_speed");
    let mut compiler = protox::Compiler::new([folder]).expect("the folder");
    compiler.include_imports(true).open_file("shapes.proto").expect("the file compiles");
    compiler.encode_file_descriptor_set()
}

struct Shape<'s> {
    ours: MessageType<'s>,
    theirs: MessageDescriptor,
    wire: Vec<u8>,
    json: Vec<u8>,
    msgpack: Vec<u8>,
}

impl<'s> Shape<'s> {
    fn new(ours: MessageType<'s>, theirs: MessageDescriptor, value: &Value) -> Shape<'s> {
        let message = DynamicMessage::deserialize(theirs.clone(), value).expect("JSON of the type");
        let wire = message.encode_to_vec();
        let json = json::from_wire(ours, &wire).expect("it has JSON").into_bytes();
        let back = json::to_wire(ours, &json).expect("JSON of the type");
        let back = DynamicMessage::decode(theirs.clone(), &*back).expect("its wire form");
        assert!(back == message, "{} does not come back from JSON", ours.full_name());
        let mut msgpack = Vec::new();
        msgpack::print(ours, &wire, &PrintOptions::default(), &mut msgpack).expect("it has MessagePack");
        Shape { ours, theirs, wire, json, msgpack }
    }

    fn measure(&self, name: &str) {
        let (mut out, print, parse) = (Vec::new(), PrintOptions::default(), ParseOptions::default());
        let mut text = Vec::new();
        let to_json = compare(
            &mut || {
                out.clear();
                json::print(self.ours, black_box(&self.wire), &print, &mut out).expect("it has JSON");
                black_box(&out);
            },
            &mut || {
                text.clear();
                let message = DynamicMessage::decode(self.theirs.clone(), black_box(&*self.wire))
                    .expect("its wire form");
                serde_json::to_writer(&mut text, &message).expect("it has JSON");
                black_box(&text);
            },
        );
        let (mut out, mut text) = (Vec::new(), Vec::new());
        let from_json = compare(
            &mut || {
                out.clear();
                json::parse(self.ours, black_box(&self.json), &parse, &mut out).expect("JSON of the type");
                black_box(&out);
            },
            &mut || {
                text.clear();
                let mut reader = serde_json::Deserializer::from_slice(black_box(&self.json));
                let message =
                    DynamicMessage::deserialize(self.theirs.clone(), &mut reader).expect("JSON of the type");
                message.encode(&mut text).expect("it fits");
                black_box(&text);
            },
        );
        let mut out = Vec::new();
        let to_msgpack = seconds(&mut || {
            out.clear();
            msgpack::print(self.ours, black_box(&self.wire), &print, &mut out).expect("it has MessagePack");
            black_box(&out);
        });
        let from_msgpack = seconds(&mut || {
            out.clear();
            msgpack::parse(self.ours, black_box(&self.msgpack), &parse, &mut out)
                .expect("MessagePack of the type");
            black_box(&out);
        });
        let (wire, json) = (self.wire.len(), self.json.len());
        let rate = |len: usize, seconds: f64| len as f64 / seconds / 1e6;
        println!(
            "{name:<10} {wire:>6} {json:>6} | {:>6.0} to {:>5.0} ({:>5.2} ×) | {:>6.0} to {:>5.0} ({:>5.2} ×) | {:>8.0} {:>8.0}",
            rate(wire, to_json.ours),
            rate(wire, to_json.theirs),
            to_json.ratio,
            rate(json, from_json.ours),
            rate(json, from_json.theirs),
            from_json.ratio,
            rate(wire, to_msgpack),
            rate(self.msgpack.len(), from_msgpack),
        );
    }
}

/// Seconds for one time, and how many times as long the other takes.
struct Compared {
    ours: f64,
    theirs: f64,
    ratio: f64,
}

fn compare(ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()) -> Compared {
    let mut rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (turn(ours), turn(theirs))).collect();
    // The first warms up.
    rounds.remove(0);
    let median = |value: &dyn Fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Compared {
        ours: median(&|(ours, _)| *ours),
        theirs: median(&|(_, theirs)| *theirs),
        ratio: median(&|(ours, theirs)| theirs / ours),
    }
}

fn seconds(work: &mut dyn FnMut()) -> f64 {
    let mut turns: Vec<f64> = (0..ROUNDS).map(|_| turn(work)).collect();
    turns.sort_by(f64::total_cmp);
    turns[turns.len() / 2]
}

/// Works for a turn, and gives the seconds of one time.
fn turn(work: &mut dyn FnMut()) -> f64 {
    let (start, mut times) = (Instant::now(), 0_u32);
    loop {
        for _ in 0..64 {
            work();
        }
        times += 64;
        let passed = start.elapsed();
        if passed >= TURN {
            return passed.as_secs_f64() / f64::from(times);
        }
    }
}

fn account() -> Value {
    json!({
        "id": "7304982114", "name": "Margarete Oberholzer", "email": "margarete.oberholzer@example.com", "active": true,
        "age": 41, "balance": 1834.25, "plan": "TEAM", "street": "Untere Bahnhofstrasse 117", "city": "Rapperswil",
        "country": "Switzerland", "createdAt": "1609459200000000000", "offsetSeconds": "-3600", "score": 0.875,
        "token": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQ", "logins": 2841,
    })
}

fn log_record() -> Value {
    json!({
        "timeUnixNano": "1721934000123456789", "severity": "WARN",
        "body": "upstream answered after 2143 ms, retrying",
        "attributes": {"service": "checkout", "region": "eu-west-1"},
        "traceId": "q83vEjRWeJCrze8SNFZ4kA==", "flags": 1,
    })
}

fn visit() -> Value {
    let event = |index: u32, name: &str, path: &str| {
        json!({
            "name": name, "at": (1_721_934_000_123_i64 + i64::from(index) * 4711).to_string(), "path": path,
            "value": f64::from(index) * 12.37 + 0.5,
            "properties": {"campaign": "summer-2024", "variant": "b", "referrer": "newsletter"},
            "positions": [index, index * 17, index * 300],
        })
    };
    json!({
        "visitId": "01J3M5Q6W4ZQ8R5T7V9X2Y4B6C",
        "visitor": {"id": "99182736455", "browser": "Firefox 128.0", "country": "DE", "segments": ["returning", "newsletter"]},
        "events": [
            event(1, "page_view", "/shop/shoes"), event(2, "filter_changed", "/shop/shoes?size=43"),
            event(3, "product_view", "/shop/shoes/4711"), event(4, "add_to_cart", "/shop/shoes/4711"),
            event(5, "checkout", "/cart"),
        ],
        "startedAt": "1721934000123", "endedAt": "1721934023678",
    })
}

/// From a seed.
fn samples() -> Value {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let values: Vec<f64> = (0..200).map(|_| random() as f64 / 1e6).collect();
    let times: Vec<String> = (0..100).map(|_| (1_721_934_000_000 + random() / 1000).to_string()).collect();
    let weights: Vec<f32> = (0..100).map(|_| random() as f32 / 1e9).collect();
    let steps: Vec<i64> = (0..200).map(|_| (random() % 2000) as i64 - 1000).collect();
    json!({"values": values, "times": times, "weights": weights, "steps": steps})
}
