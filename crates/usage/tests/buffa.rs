//! Messages of buffa from two packages, as modules of one include file.

use std::net::{Ipv4Addr, SocketAddr};

use thalweg::{Channel, Request, Response, Server, Status};

use proto::shop::common::Money;
use proto::shop::orders::v1::Order;
use proto::shop::orders::v1::orders_client::OrdersClient;
use proto::shop::orders::v1::orders_server::{Orders, OrdersServer};

#[allow(unreachable_pub, unused_imports, clippy::pedantic, reason = "generated")]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/buffa/mod.rs"));
}

struct Shop;

impl Orders for Shop {
    async fn place(&self, request: Request<Order>) -> Result<Response<Money>, Status> {
        Ok(Response::new(request.into_inner().price.into_option().unwrap_or_default()))
    }
}

#[tokio::test]
async fn include_file_has_all_packages() {
    let server = Server::builder().add_service(OrdersServer::new(Shop));
    let server = server.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let address = server.local_addresses()[0].to_string();
    tokio::spawn(server.serve());
    let client = OrdersClient::new(Channel::builder(address).connect().await.unwrap());
    let price = Money { currency: "EUR".to_owned(), units: 3, ..Money::default() };
    let order = Order { name: "tea".to_owned(), price: price.clone().into(), ..Order::default() };
    assert_eq!(client.place(order).await.unwrap().into_inner(), price);
}
