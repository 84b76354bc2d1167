//! A scriptable service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio_stream::StreamExt as _;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use crate::pb::{Order, bakery_server, shop_server};

type ResponseFuture<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;
type Handler<Q, P> = Box<dyn Fn(Request<Q>) -> ResponseFuture<P> + Send + Sync>;

/// Returns what it receives unless a test sets a handler.
pub struct ShopService {
    buy: Handler<Order, Order>,
    list: Handler<Order, BoxStream<Order>>,
    collect: Handler<Streaming<Order>, Order>,
    haggle: Handler<Streaming<Order>, BoxStream<Order>>,
}

fn box_handler<Q, P, F>(handler: impl Fn(Request<Q>) -> F + Send + Sync + 'static) -> Handler<Q, P>
where
    F: Future<Output = Result<Response<P>, Status>> + Send + 'static,
{
    Box::new(move |request| Box::pin(handler(request)))
}

impl Default for ShopService {
    fn default() -> Self {
        Self {
            buy: box_handler(async |request: Request<Order>| Ok(Response::new(request.into_inner()))),
            list: box_handler(async |request: Request<Order>| {
                let orders = vec![Ok(request.into_inner()); 2];
                Ok(Response::new(Box::pin(tokio_stream::iter(orders)) as BoxStream<Order>))
            }),
            collect: box_handler(async |request: Request<Streaming<Order>>| {
                let mut orders = request.into_inner();
                let mut all = Order::default();
                while let Some(order) = orders.message().await? {
                    all.item += &order.item;
                    all.note.extend(order.note);
                }
                Ok(Response::new(all))
            }),
            haggle: box_handler(async |request: Request<Streaming<Order>>| {
                Ok(Response::new(Box::pin(request.into_inner()) as BoxStream<Order>))
            }),
        }
    }
}

impl ShopService {
    /// Handles `Buy`.
    pub fn on_buy<F>(buy: impl Fn(Request<Order>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Response<Order>, Status>> + Send + 'static,
    {
        Self { buy: box_handler(buy), ..Self::default() }
    }

    /// Handles `List` with the results of `list` for the order.
    pub fn on_list(list: impl Fn(Order) -> Vec<Result<Order, Status>> + Send + Sync + 'static) -> Self {
        let list = box_handler(move |request: Request<Order>| {
            let orders = tokio_stream::iter(list(request.into_inner()));
            async { Ok(Response::new(Box::pin(orders) as BoxStream<Order>)) }
        });
        Self { list, ..Self::default() }
    }

    /// Disables compression of single-message responses.
    pub fn uncompressed() -> Self {
        Self {
            buy: box_handler(async |request: Request<Order>| Ok(uncompressed(request.into_inner()))),
            list: box_handler(async |request: Request<Order>| {
                let orders = vec![Ok(request.into_inner()); 2];
                Ok(uncompressed(Box::pin(tokio_stream::iter(orders)) as BoxStream<Order>))
            }),
            collect: box_handler(async |request: Request<Streaming<Order>>| {
                let mut orders = request.into_inner();
                let mut last = Order::default();
                while let Some(order) = orders.try_next().await? {
                    last = order;
                }
                Ok(uncompressed(last))
            }),
            ..Self::default()
        }
    }
}

fn uncompressed<T>(message: T) -> Response<T> {
    let mut response = Response::new(message);
    response.disable_compression();
    response
}

#[tonic::async_trait]
impl shop_server::Shop for ShopService {
    type ListStream = BoxStream<Order>;
    type HaggleStream = BoxStream<Order>;

    async fn buy(&self, request: Request<Order>) -> Result<Response<Order>, Status> {
        (self.buy)(request).await
    }

    async fn list(&self, request: Request<Order>) -> Result<Response<BoxStream<Order>>, Status> {
        (self.list)(request).await
    }

    async fn collect(&self, request: Request<Streaming<Order>>) -> Result<Response<Order>, Status> {
        (self.collect)(request).await
    }

    async fn haggle(&self, request: Request<Streaming<Order>>) -> Result<Response<BoxStream<Order>>, Status> {
        (self.haggle)(request).await
    }
}

impl fmt::Debug for ShopService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShopService").finish_non_exhaustive()
    }
}

/// A bakery.
#[derive(Clone, Copy, Debug)]
pub struct BakeryService;

#[tonic::async_trait]
impl bakery_server::Bakery for BakeryService {
    async fn bake(&self, request: Request<String>) -> Result<Response<()>, Status> {
        match request.into_inner().as_str() {
            "stones" => Err(Status::invalid_argument("nobody eats stones")),
            _ => Ok(Response::new(())),
        }
    }
}
