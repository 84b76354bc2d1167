//! Kind of measured work, without size and transport.

use super::point::{Pattern, Point, Work};
use crate::record::CallType;

/// Identity of a line in plots and tables: everything of a point except size and transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Kind {
    pub(crate) work: Work,
    pub(crate) in_flight: u32,
    pub(crate) connections: u32,
}

impl Kind {
    /// Lone unary calls, which measure the latency for one caller.
    pub(crate) const LONE_CALL: Self =
        Self { work: Work::Call(CallType::Unary), in_flight: 1, connections: 1 };

    /// Returns the kind of a point.
    pub(crate) fn of(point: &Point) -> Self {
        Self { work: point.work, in_flight: point.in_flight, connections: point.connections }
    }

    /// Returns the kind as a plural phrase: `lone unary calls`.
    pub(crate) fn phrase(self) -> String {
        match (self.work, self.in_flight) {
            (Work::Call(CallType::Unary), 1) => "lone unary calls".to_owned(),
            (Work::Call(CallType::Unary), in_flight) => {
                format!("{in_flight} unary calls in flight{}", self.over_connections())
            }
            (Work::Call(_), 1) => self.label() + "s",
            _ => self.label(),
        }
    }

    /// Returns the number of connections as a phrase, empty for one connection.
    fn over_connections(self) -> String {
        match self.connections {
            1 => String::new(),
            connections => format!(", {connections} connections"),
        }
    }

    /// The kind's name in tables and legends.
    pub(crate) fn label(self) -> String {
        let in_flight = self.in_flight;
        let under_way = match in_flight {
            1 => "one at a time".to_owned(),
            _ => format!("{in_flight} in flight"),
        };
        match self.work {
            Work::Call(CallType::Unary) => format!("unary, {under_way}{}", self.over_connections()),
            Work::Call(call) => {
                let name = call.name().replace('-', " ");
                if in_flight == 1 { name } else { format!("{in_flight} {name}s{}", self.over_connections()) }
            }
            Work::Socket(Pattern::Echo) => format!("bare socket echo, {under_way}"),
            Work::Socket(Pattern::Pipelined) => "bare socket echo, pipelined".to_owned(),
            Work::Socket(Pattern::OneWay) => "bare socket, one way".to_owned(),
        }
    }
}
