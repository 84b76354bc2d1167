//! Converts a captured call to a transcript.

use std::time::{Duration, SystemTime};

use thalweg_protobuf::Schema;

use crate::capture::call::{Call, CallDirection, Fields, field};
use crate::transcript::{CapturedInfo, MessageCounts, Messages, Metadata, Phase, Status, Transcript, framed};
use crate::tree::counted;

/// Start of the year 10000, which RFC 3339 cannot express.
const YEAR_10_000: Duration = Duration::from_secs(253_402_300_800);

impl Call {
    /// Returns the call with its messages. `number` is the call's in the capture. `outcome` names the status or,
    /// without one, the [`end`](Self::end). `schema` may declare message types.
    pub fn transcript<'s>(&self, number: u64, outcome: &str, schema: &'s Schema) -> Transcript<'s> {
        let method = self.method();
        let types = method.as_deref().and_then(|method| schema.method(method));
        let types = types.map(|method| (method.input(), method.output())).unzip();
        let messages = |way: &str, side: &CallDirection, message_type| {
            // Does not fail: lengths were 32 bits on the wire.
            let frames = framed(side.messages.iter().map(|message| (message.flags, &message.bytes[..])));
            Messages::new(format!("call {number}, {way}"), frames.unwrap_or_default(), message_type)
        };
        let details =
            || field(self.trailers.as_ref()?, "grpc-status-details-bin").map(String::from_utf8_lossy);
        Transcript {
            schema: "thalweg.inspect-call/1",
            target: self.server.to_string(),
            started: self.started(),
            request_metadata: self.request.headers.as_ref().map(metadata),
            response_metadata: self.response.headers.as_ref().map(metadata),
            trailers: self.trailers.as_ref().map(metadata),
            status: self.status().map(|code| Status {
                code,
                name: outcome.to_owned(),
                message: self.status_message(),
                details: details().unwrap_or_default().into_owned(),
            }),
            phases: self.phases(outcome),
            captured: Some(CapturedInfo {
                call: number,
                client: self.client.to_string(),
                stream: self.stream,
                ended: outcome.to_owned(),
                sent: self.counted(&self.request),
                received: self.counted(&self.response),
                notes: self.missing().chain(self.notes.iter().cloned()).collect(),
            }),
            requests: messages("requests", &self.request, types.0),
            responses: messages("responses", &self.response, types.1),
            method,
        }
    }

    fn started(&self) -> String {
        let at = Some(self.started_at()).filter(|at| *at < YEAR_10_000);
        let at = at.and_then(|at| SystemTime::UNIX_EPOCH.checked_add(at));
        at.map_or("at no time".to_owned(), |at| humantime::format_rfc3339_micros(at).to_string())
    }

    fn since_start(&self, at: Duration) -> u64 {
        at.saturating_sub(self.started_at()).as_nanos() as u64
    }

    fn phases(&self, outcome: &str) -> Vec<Phase> {
        let described = |side: &CallDirection| {
            format!("{}, {} B", counted(side.message_count as usize, "message"), side.message_bytes)
        };
        let response_head = self.response.headers.as_ref().and(self.response.started_at);
        let steps = [
            ("last request", self.request.last_message_at, described(&self.request)),
            ("head", response_head, String::new()),
            ("first message", self.response.first_message_at, String::new()),
            ("last message", self.response.last_message_at, described(&self.response)),
            ("end", Some(self.ended_at), outcome.to_owned()),
        ];
        let phase = |(name, at, note): (&str, Option<Duration>, String)| {
            Some(Phase { name: name.to_owned(), ended_ns: self.since_start(at?), note })
        };
        let mut phases: Vec<Phase> = steps.into_iter().filter_map(phase).collect();
        phases.sort_by_key(|phase| phase.ended_ns);
        phases
    }

    fn counted(&self, side: &CallDirection) -> MessageCounts {
        MessageCounts {
            messages: side.message_count,
            bytes: side.message_bytes,
            cut_off_bytes: side.incomplete_bytes,
            at_ns: side.messages.iter().map(|message| self.since_start(message.at)).collect(),
        }
    }

    /// Returns notes about incomplete or dropped messages.
    fn missing(&self) -> impl Iterator<Item = String> {
        [(&self.request, "request"), (&self.response, "response")].into_iter().flat_map(|(side, whose)| {
            let (kept, all, cut_off) =
                (side.messages.len() as u64, side.message_count, side.incomplete_bytes as usize);
            let incomplete = counted(cut_off, "byte");
            let incomplete = format!("{incomplete} of an incomplete message of the {whose}");
            let dropped = format!("kept {kept} of {all} messages of the {whose}");
            [(cut_off > 0).then_some(incomplete), (kept < all).then_some(dropped)].into_iter().flatten()
        })
    }
}

/// Returns headers except those shown elsewhere.
fn metadata(fields: &Fields) -> Metadata {
    let is_shown_elsewhere = |name: &str| matches!(name, ":method" | ":scheme" | ":path" | ":status");
    fields
        .iter()
        .filter(|(name, _)| !is_shown_elsewhere(name))
        .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).escape_debug().to_string()))
        .collect()
}
