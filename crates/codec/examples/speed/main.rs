//! Compares decoding, encoding, JSON and MessagePack of our Protobuf engine with generated code of prost and buffa, and
//! with prost-reflect.
//!
//! ```sh
//! cargo run --release -p thalweg-codec --example speed  # a table; --rounds N for more than 15
//! cargo run --release -p thalweg-codec --example speed -- --only Analytics --contender engine --count 100000
//! ```
//!
//! Five shapes of messages, 64 of each, are generated from a seed and used in turn. The contenders alternate, some
//! milliseconds each, on one core; the median of all rounds counts. Output goes to a reused buffer: the encoder's own
//! for `engine`, or appended to the caller's for `engine, appended`. The second command runs one contender and prints
//! nothing, for profilers.
//!
//! The engine and `buffa-view` leave strings in the bytes when they decode. The measured time therefore includes
//! reading each field, down to the last number and the length of each string; `engine, unread` excludes it. prost,
//! buffa and prost-reflect own what they decode, so it is not read.

#![allow(missing_docs, unreachable_pub, clippy::cast_possible_wrap)]

mod shapes;
mod viewed;

use std::hint::black_box;
use std::time::{Duration, Instant};

use buffa::HasMessageView;
use bytes::Bytes;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use thalweg_protobuf::json::{self, ParseOptions, PrintOptions};
use thalweg_protobuf::{Decoder, Encoder, Message, MessageType, Schema, msgpack};

use shapes::{Analytics, Arrays, LogRecord, Random, Series, Shape, SmallFlat};
use viewed::read::{self, Read};

const MESSAGES: usize = 64;
const SEED: u64 = 1;
/// The descriptors of `proto/speed.proto`.
const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/speed.bin"));
/// Time of one contender per round.
const SLICE: Duration = Duration::from_millis(8);

/// Converts message `index`.
type Convert<'a> = Box<dyn FnMut(usize) + 'a>;

struct Contender<'a> {
    name: &'static str,
    convert: Convert<'a>,
}

fn contender<'a>(name: &'static str, convert: impl FnMut(usize) + 'a) -> Contender<'a> {
    Contender { name, convert: Box::new(convert) }
}

struct Options {
    rounds: usize,
    only: Option<String>,
    contender: Option<String>,
    count: usize,
}

fn main() {
    let mut options = Options { rounds: 15, only: None, contender: None, count: 100_000 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
        match argument.as_str() {
            "--rounds" => options.rounds = value.parse().expect("a number"),
            "--only" => options.only = Some(value),
            "--contender" => options.contender = Some(value),
            "--count" => options.count = value.parse().expect("a number"),
            _ => panic!("{argument} is not known"),
        }
    }
    pin();
    if options.contender.is_none() {
        println!("MB/s, median of {} rounds; in brackets how often the engine's fits in", options.rounds);
    }
    shape::<SmallFlat, viewed::SmallFlat>(&options);
    shape::<LogRecord, viewed::LogRecord>(&options);
    shape::<Analytics, viewed::Analytics>(&options);
    shape::<Arrays, viewed::Arrays>(&options);
    shape::<Series, viewed::Series>(&options);
}

/// Measures a shape. S is prost's message, B buffa's.
fn shape<S: Shape, B: HasMessageView + 'static>(options: &Options)
where
    for<'w> B::View<'w>: Read,
{
    if options.only.as_deref().is_some_and(|only| only != S::NAME) {
        return;
    }
    let schema = Schema::from_descriptor_set(DESCRIPTORS).expect("the build script wrote it");
    let of = schema.message(&format!("speed.{}", S::NAME)).expect("declared in the file");
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("the build script wrote it");
    let reflected = pool.get_message_by_name(of.full_name()).expect("declared in the file");

    let mut random = Random(SEED);
    let generated: Vec<S> = (0..MESSAGES).map(|_| S::random(&mut random)).collect();
    let inputs: Vec<Bytes> = generated.iter().map(|message| message.encode_to_vec().into()).collect();
    let bytes = inputs.iter().map(Bytes::len).sum::<usize>() / MESSAGES;
    let owned: Vec<Message> =
        inputs.iter().map(|input| Message::decode(of, input.clone()).expect("right bytes")).collect();
    for (message, input) in owned.iter().zip(&inputs) {
        let ours = S::decode(message.as_ref().encode_to_vec().as_slice()).expect("right bytes");
        assert!(ours == S::decode(input.clone()).expect("right bytes"), "the same message");
        let view = B::decode_view(input).expect("right bytes");
        assert_eq!(message.as_ref().read(), view.read(), "the same fields are read");
    }
    let dynamic: Vec<DynamicMessage> = inputs
        .iter()
        .map(|input| DynamicMessage::decode(reflected.clone(), input.clone()).expect("right bytes"))
        .collect();

    let (mut decoder, mut unread) = (Decoder::default(), Decoder::default());
    let decode = [
        contender("engine", |index| {
            let message = decoder.decode(of, &inputs[index]).expect("right bytes");
            black_box(black_box(message).read());
        }),
        contender("engine, unread", |index| {
            black_box(unread.decode(of, &inputs[index]).expect("right bytes"));
        }),
        contender("engine, owned", |index| {
            let message = Message::decode(of, inputs[index].clone()).expect("right bytes");
            black_box(black_box(&message).as_ref().read());
        }),
        contender("buffa-view", |index| {
            let view = B::decode_view(&inputs[index]).expect("right bytes");
            black_box(black_box(&view).read());
        }),
        contender("buffa", |index| {
            black_box(B::decode_from_slice(&inputs[index]).expect("right bytes"));
        }),
        contender("prost", |index| {
            black_box(S::decode(&*inputs[index]).expect("right bytes"));
        }),
        contender("prost-reflect", |index| {
            black_box(DynamicMessage::decode(reflected.clone(), &*inputs[index]).expect("right bytes"));
        }),
    ];
    run(&format!("{} ({bytes} B) decode", S::NAME), bytes, decode, options);

    let (mut encoder, mut appended) = (Encoder::new(), Encoder::new());
    let (mut ours, mut theirs, mut dynamics) = (Vec::new(), Vec::new(), Vec::new());
    let encode = [
        contender("engine", |index| {
            black_box(encoder.encode(owned[index].as_ref()));
        }),
        contender("engine, appended", |index| {
            ours.clear();
            ours.extend_from_slice(appended.encode(owned[index].as_ref()));
            black_box(&ours);
        }),
        contender("prost", |index| {
            theirs.clear();
            generated[index].encode(&mut theirs).expect("writing to a Vec does not fail");
            black_box(&theirs);
        }),
        contender("prost-reflect", |index| {
            dynamics.clear();
            dynamic[index].encode(&mut dynamics).expect("writing to a Vec does not fail");
            black_box(&dynamics);
        }),
    ];
    run(&format!("{} ({bytes} B) encode", S::NAME), bytes, encode, options);
    texts(S::NAME, of, &reflected, &inputs, options);
}

/// Measures JSON and MessagePack. Rates count input bytes.
fn texts(
    name: &str,
    of: MessageType<'_>,
    reflected: &MessageDescriptor,
    inputs: &[Bytes],
    options: &Options,
) {
    let (print, parse) = (PrintOptions::default(), ParseOptions::default());
    let mean = |inputs: &[Vec<u8>]| inputs.iter().map(Vec::len).sum::<usize>() / MESSAGES;
    let wire_len = inputs.iter().map(Bytes::len).sum::<usize>() / MESSAGES;
    let as_json = |input: &Bytes| json::from_wire(of, input).expect("right bytes").into_bytes();
    let texts: Vec<Vec<u8>> = inputs.iter().map(as_json).collect();
    let packed: Vec<Vec<u8>> =
        inputs.iter().map(|input| msgpack::from_wire(of, input).expect("right bytes")).collect();
    for ((input, text), packed) in inputs.iter().zip(&texts).zip(&packed) {
        let message = |wire: &[u8]| DynamicMessage::decode(reflected.clone(), wire).expect("right bytes");
        assert!(message(&json::to_wire(of, text).expect("JSON")) == message(input), "the same message");
        assert!(
            message(&msgpack::to_wire(of, packed).expect("MessagePack")) == message(input),
            "the same message"
        );
    }

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let to_json = [
        contender("engine", |index| {
            ours.clear();
            json::print(of, &inputs[index], &print, &mut ours).expect("right bytes");
            black_box(&ours);
        }),
        contender("prost-reflect", |index| {
            theirs.clear();
            let message = DynamicMessage::decode(reflected.clone(), &*inputs[index]).expect("right bytes");
            serde_json::to_writer(&mut theirs, &message).expect("it has JSON");
            black_box(&theirs);
        }),
    ];
    run(&format!("{name} ({wire_len} B) to JSON"), wire_len, to_json, options);

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let from_json = [
        contender("engine", |index| {
            ours.clear();
            json::parse(of, &texts[index], &parse, &mut ours).expect("JSON of the type");
            black_box(&ours);
        }),
        contender("prost-reflect", |index| {
            theirs.clear();
            let mut reader = serde_json::Deserializer::from_slice(&texts[index]);
            let message =
                DynamicMessage::deserialize(reflected.clone(), &mut reader).expect("JSON of the type");
            message.encode(&mut theirs).expect("writing to a Vec does not fail");
            black_box(&theirs);
        }),
    ];
    let json_len = mean(&texts);
    run(&format!("{name} ({json_len} B) from JSON"), json_len, from_json, options);

    let (mut ours, mut back) = (Vec::new(), Vec::new());
    let to_msgpack = [contender("engine", |index| {
        ours.clear();
        msgpack::print(of, &inputs[index], &print, &mut ours).expect("right bytes");
        black_box(&ours);
    })];
    run(&format!("{name} ({wire_len} B) to MsgPack"), wire_len, to_msgpack, options);
    let from_msgpack = [contender("engine", |index| {
        back.clear();
        msgpack::parse(of, &packed[index], &parse, &mut back).expect("MessagePack of the type");
        black_box(&back);
    })];
    let packed_len = mean(&packed);
    run(&format!("{name} ({packed_len} B) from MsgPack"), packed_len, from_msgpack, options);
}

fn run<const N: usize>(what: &str, bytes: usize, mut contenders: [Contender<'_>; N], options: &Options) {
    if let Some(only) = &options.contender {
        let (direction, name) = only.split_once(':').unwrap_or(("", only));
        for contender in contenders.iter_mut().filter(|it| it.name == name && what.ends_with(direction)) {
            (0..options.count).for_each(|round| (contender.convert)(round % MESSAGES));
        }
        return;
    }
    let mut rates = vec![Vec::new(); N];
    for round in 0..=options.rounds {
        for (contender, rates) in contenders.iter_mut().zip(&mut rates) {
            let (start, mut count) = (Instant::now(), 0);
            while start.elapsed() < SLICE {
                (0..MESSAGES).for_each(&mut contender.convert);
                count += MESSAGES;
            }
            // The first round warms up.
            if round > 0 {
                rates.push((bytes * count) as f64 / start.elapsed().as_secs_f64() / 1e6);
            }
        }
    }
    let medians: Vec<f64> = rates
        .into_iter()
        .map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        })
        .collect();
    print!("{what:<32}");
    for (contender, median) in contenders.iter().zip(&medians) {
        print!("  {} {median:.0} ({:.2})", contender.name, medians[0] / median);
    }
    println!();
}

/// Pins to one core, so that contenders share caches and clock.
#[cfg(target_os = "linux")]
fn pin() {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).expect("a process may ask where it may run");
    let last = (0..CpuSet::count()).rev().find(|&core| allowed.is_set(core).unwrap_or(false));
    let mut one = CpuSet::new();
    one.set(last.expect("it runs somewhere")).expect("a core that there is");
    sched_setaffinity(this, &one).expect("a core that was allowed");
}

#[cfg(not(target_os = "linux"))]
fn pin() {}
