//! Request messages of calls.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thalweg::bytes::Bytes;

use crate::arrivals::Random;
use crate::template::TemplateValues;
use crate::variables::Variables;

/// Order of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In turn, starting over after the last.
    #[default]
    InTurn,
    /// At random.
    Random {
        /// Seed of the choice.
        seed: u64,
    },
}

/// A source of messages, each created when it is sent.
pub trait MakeMessage: Send + Sync + fmt::Debug {
    /// Returns the number of messages.
    fn count(&self) -> usize;

    /// Returns the encoded message with this index, or why it cannot be made.
    fn make(&self, index: usize, values: &TemplateValues<'_>) -> Result<Bytes, String>;
}

/// Request messages of calls.
#[derive(Clone, Debug)]
pub struct Requests {
    source: Source,
    order: Order,
    /// Messages of a request stream.
    per_stream: u64,
}

#[derive(Clone, Debug)]
enum Source {
    /// Encoded messages.
    Ready(Vec<Bytes>),
    /// Messages created when they are sent.
    Made { make: Arc<dyn MakeMessage>, seed: u64 },
}

impl Requests {
    /// Creates requests from encoded messages, with `per_stream` per stream. No messages means one empty message.
    pub fn new(messages: Vec<Bytes>, order: Order, per_stream: Option<u64>) -> Self {
        let per_stream = per_stream.unwrap_or(messages.len() as u64);
        let messages = if messages.is_empty() { vec![Bytes::new()] } else { messages };
        Self { source: Source::Ready(messages), order, per_stream }
    }

    /// Creates requests from messages made by `make`, with `per_stream` per stream. Their random parts are drawn from
    /// `seed`.
    pub fn made(make: Arc<dyn MakeMessage>, seed: u64, order: Order, per_stream: Option<u64>) -> Self {
        let per_stream = per_stream.unwrap_or(make.count() as u64);
        Self { source: Source::Made { make, seed }, order, per_stream }
    }

    /// Returns the number of messages in a stream.
    pub fn per_stream(&self) -> u64 {
        self.per_stream
    }

    /// Returns the only message of a call.
    pub(crate) fn of_call(&self, request: u64, worker: u64, variables: &Variables) -> Result<Bytes, String> {
        self.at(request, request, worker, 0, variables)
    }

    /// Returns a message of the stream of a call.
    pub(crate) fn of_stream(
        &self,
        request: u64,
        worker: u64,
        message: u64,
        variables: &Variables,
    ) -> Result<Bytes, String> {
        // Each stream that only a time ends begins one message after the start of the previous stream.
        let messages = if self.per_stream == u64::MAX { 1 } else { self.per_stream };
        let place = request.wrapping_mul(messages).wrapping_add(message);
        self.at(place, request, worker, message, variables)
    }

    fn at(
        &self,
        place: u64,
        request: u64,
        worker: u64,
        message: u64,
        variables: &Variables,
    ) -> Result<Bytes, String> {
        match &self.source {
            Source::Ready(messages) => Ok(messages[self.order.choose(place, messages.len())].clone()),
            Source::Made { make, seed } => {
                let values =
                    TemplateValues { request, worker, message, seed: *seed, variables: Some(variables) };
                make.make(self.order.choose(place, make.count()), &values)
            }
        }
    }
}

impl Order {
    /// Chooses one of `count`. The choice depends on the place only, not on the worker.
    fn choose(self, place: u64, count: usize) -> usize {
        let index = match self {
            _ if count <= 1 => 0,
            Self::InTurn => place % count as u64,
            Self::Random { seed } => {
                Random(seed ^ place.wrapping_mul(0x2545_f491_4f6c_dd1d)).next() % count as u64
            }
        };
        index as usize
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "in-turn" => Ok(Self::InTurn),
            None if text == "random" => Ok(Self::Random { seed: 0 }),
            Some(("random", seed)) => seed
                .parse()
                .map(|seed| Self::Random { seed })
                .map_err(|_| format!("invalid seed `{seed}`; expected a number")),
            _ => Err(format!("invalid order `{text}`; use in-turn, random or random:SEED")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(order: Order, per_stream: Option<u64>) -> Requests {
        Requests::new(["a", "b", "c"].map(Bytes::from).to_vec(), order, per_stream)
    }

    #[test]
    fn messages_come_in_turn() {
        let all = requests(Order::InTurn, Some(2));
        let calls: Vec<Bytes> = (0..4).map(|call| all.of_call(call, 0, &Variables::new()).unwrap()).collect();
        assert_eq!(calls, ["a", "b", "c", "a"]);
        let places = [(0, 0), (0, 1), (1, 0), (1, 1)];
        let streams =
            places.map(|(call, message)| all.of_stream(call, 0, message, &Variables::new()).unwrap());
        assert_eq!(streams, ["a", "b", "c", "a"]);
        assert_eq!(requests(Order::InTurn, None).per_stream(), 3);
        assert_eq!(
            Requests::new(Vec::new(), Order::InTurn, None).of_call(5, 0, &Variables::new()).unwrap(),
            ""
        );
    }

    /// Returns the given messages.
    #[derive(Debug)]
    struct Same(Vec<Bytes>);

    impl MakeMessage for Same {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn make(&self, index: usize, _: &TemplateValues<'_>) -> Result<Bytes, String> {
            Ok(self.0[index].clone())
        }
    }

    #[test]
    fn generated_messages_have_order_of_constant_messages() {
        let messages = ["a", "b", "c"].map(Bytes::from).to_vec();
        for order in [Order::InTurn, Order::Random { seed: 3 }] {
            for per_stream in [None, Some(1), Some(2), Some(7), Some(u64::MAX)] {
                let ready = Requests::new(messages.clone(), order, per_stream);
                let made = Requests::made(Arc::new(Same(messages.clone())), 9, order, per_stream);
                let sent = |requests: &Requests| -> Vec<Bytes> {
                    let places = (0..8).flat_map(|call| (0..8).map(move |message| (call, message)));
                    places
                        .map(|(call, message)| {
                            requests.of_stream(call, 0, message, &Variables::new()).unwrap()
                        })
                        .collect()
                };
                assert_eq!(sent(&ready), sent(&made), "{order:?}, {per_stream:?}");
                assert_eq!(ready.per_stream(), made.per_stream());
            }
        }
    }

    #[test]
    fn time_limited_stream_cycles_through_messages() {
        let all = requests(Order::InTurn, Some(u64::MAX));
        let stream: Vec<Bytes> =
            (0..4).map(|message| all.of_stream(1, 0, message, &Variables::new()).unwrap()).collect();
        assert_eq!(stream, ["b", "c", "a", "b"]);
    }

    #[test]
    fn same_seed_gives_same_random_messages() {
        let drawn = |seed| -> Vec<Bytes> {
            let all = requests(Order::Random { seed }, None);
            (0..300).map(|call| all.of_call(call, 0, &Variables::new()).unwrap()).collect()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        for message in ["a", "b", "c"] {
            let count = drawn(1).iter().filter(|drawn| *drawn == message).count();
            assert!((70..130).contains(&count), "{message}: {count}");
        }
        assert_eq!("random:7".parse(), Ok(Order::Random { seed: 7 }));
        assert!("sorted".parse::<Order>().is_err());
    }
}
