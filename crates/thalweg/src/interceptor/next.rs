//! The rest of an interceptor chain: [`Next`].

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use thalweg_core::{Request, Status};

use super::call::{Call, Reply};

/// A boxed future.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Continues a call: the next interceptor or, after the last, the channel or the handler.
///
/// Running a clone repeats the call, for interceptors that retry.
#[derive(Clone)]
pub struct Next {
    chain: Chain,
    position: usize,
    last: Arc<Last>,
}

/// The channel or the handler.
pub(crate) type Last = dyn Fn(Call) -> BoxFuture<Result<Reply, Status>> + Send + Sync;

/// A function that sees a request without its messages.
pub(crate) type HeadFunction = dyn Fn(Request<()>) -> Result<Request<()>, Status> + Send + Sync;

/// An interceptor that wraps a call.
pub(crate) type CallFunction = dyn Fn(Call, Next) -> BoxFuture<Result<Reply, Status>> + Send + Sync;

/// An interceptor of a chain.
#[derive(Clone)]
pub(crate) enum Link {
    Head(Arc<HeadFunction>),
    Call(Arc<CallFunction>),
}

/// The interceptors of a channel, a service or a server, outermost first.
#[derive(Clone)]
pub(crate) struct Chain(Arc<[Link]>);

impl Default for Chain {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl Next {
    /// Continues the call. Dropping the future cancels it.
    pub fn run(self, call: Call) -> impl Future<Output = Result<Reply, Status>> + Send + 'static {
        self.run_boxed(call)
    }

    pub(super) fn run_boxed(mut self, mut call: Call) -> BoxFuture<Result<Reply, Status>> {
        loop {
            let Some(link) = self.chain.0.get(self.position) else { return (self.last)(call) };
            self.position += 1;
            match link {
                Link::Head(head) => match call.with_head(&**head) {
                    Ok(changed) => call = changed,
                    Err(status) => return Box::pin(ready(Err(status))),
                },
                Link::Call(intercept) => {
                    let intercept = Arc::clone(intercept);
                    return intercept(call, self);
                }
            }
        }
    }
}

impl Chain {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a chain with one more interceptor, innermost.
    pub(crate) fn with(&self, link: Link) -> Self {
        Self(self.0.iter().cloned().chain([link]).collect())
    }

    /// Returns a chain with another chain inside.
    pub(crate) fn with_all(&self, inner: &Self) -> Self {
        Self(self.0.iter().chain(&*inner.0).cloned().collect())
    }

    /// Number of leading interceptors that see only heads. They need no message, so none is decoded for a call they
    /// reject.
    fn leading_head_functions(&self) -> usize {
        self.0.iter().take_while(|link| matches!(link, Link::Head(_))).count()
    }

    /// Returns true if none of them sees messages.
    pub(crate) fn has_only_head_functions(&self) -> bool {
        self.leading_head_functions() == self.0.len()
    }

    /// Runs the leading interceptors, up to the first that sees messages.
    pub(crate) fn run_head_functions(&self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for link in &*self.0 {
            let Link::Head(head) = link else { break };
            request = head(request)?;
        }
        Ok(request)
    }

    /// Runs the interceptors left by [`run_head_functions`](Self::run_head_functions), then `last`.
    pub(crate) fn run_after_head_functions(
        &self,
        call: Call,
        last: Arc<Last>,
    ) -> BoxFuture<Result<Reply, Status>> {
        Next { chain: self.clone(), position: self.leading_head_functions(), last }.run_boxed(call)
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remaining = self.chain.0.len() - self.position;
        f.debug_struct("Next").field("interceptors_remaining", &remaining).finish_non_exhaustive()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("interceptors", &self.0.len()).finish()
    }
}
