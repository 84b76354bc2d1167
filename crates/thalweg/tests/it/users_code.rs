//! Code of the user's runs under no lock: whatever it does, it may call the channel that it is used by.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{ECHO, Echo, connect, echo, poll_once, raw, serve, soon, until};
use thalweg::bytes::Bytes;
use thalweg::{CallOptions, Channel, DecodeError, Message, Raw, Request};

/// What a message's code does on the side: it begins a call on the same channel, and gives it up.
#[derive(Clone)]
struct Meddler {
    channel: Channel,
    times: Arc<AtomicUsize>,
}

impl Meddler {
    fn meddle(&self) {
        let channel = self.channel.clone();
        let mut call = Box::pin(async move { echo(&channel, raw("on the side")).await.is_ok() });
        poll_once(call.as_mut());
        self.times.fetch_add(1, Ordering::SeqCst);
    }
}

/// A buffer that meddles when it is dropped.
struct Owner {
    bytes: Vec<u8>,
    meddler: Meddler,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.meddler.meddle();
    }
}

fn message(len: usize, meddler: &Meddler) -> Raw {
    Raw(Bytes::from_owner(Owner { bytes: vec![7; len], meddler: meddler.clone() }))
}

#[tokio::test]
async fn a_buffer_may_call_the_channel_when_it_is_dropped() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
    // Copied, chained, and more than the windows let through at once.
    for len in [1, 5_000, 100_000, 3 << 20] {
        soon(echo(&channel, message(len, &meddler))).await.expect("an echo");
    }
    let done = Arc::clone(&meddler.times);
    until(|| done.load(Ordering::SeqCst) == 4).await;
    // A call that is given up while most of its message is queued.
    let options = CallOptions::default();
    let big = message(3 << 20, &meddler);
    let mut call = Box::pin(channel.unary::<_, Raw>(&ECHO, Request::new(big), &options));
    assert!(poll_once(call.as_mut()).is_none());
    drop(call);
    let done = Arc::clone(&meddler.times);
    until(|| done.load(Ordering::SeqCst) == 5).await;
    soon(echo(&channel, raw("still here"))).await.expect("an echo");
}

/// A message that meddles when it is encoded.
struct Nosy(Meddler);

impl Message for Nosy {
    fn encoded_len(&self) -> usize {
        self.0.meddle();
        1
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.meddle();
        out.push(7);
    }

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Err(DecodeError::new("it is only sent"))
    }
}

#[tokio::test]
async fn a_message_may_call_the_channel_when_it_is_encoded() {
    let target = serve(Echo::default()).await;
    let channel = connect(&target).await;
    let meddler = Meddler { channel: channel.clone(), times: Arc::default() };
    let request = Request::new(Nosy(meddler.clone()));
    let options = CallOptions::default();
    let reply = soon(channel.unary::<_, Raw>(&ECHO, request, &options)).await.expect("an echo");
    assert_eq!(&reply.get_ref().0[..], [7]);
    assert!(meddler.times.load(Ordering::SeqCst) >= 2);
}
