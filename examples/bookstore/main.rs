//! A bookstore: one service, called by gRPC, Connect, gRPC-Web and plain JSON, and the shop's own pages, on one port.
//! Start it with `cargo run --example bookstore [ADDRESS]`; its README has requests to try.

mod advice;
mod names;
mod pages;
mod proto;
mod service;
mod store;

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use thalweg::Server;
use thalweg::web::Web;
use thalweg::web::cors::{Cors, Origins};
use thalweg_services::reflection::Reflection;

use proto::bookstore_server::BookstoreServer;
use service::Service;
use store::Store;

#[tokio::main]
async fn main() -> ExitCode {
    match run(std::env::args().nth(1)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bookstore: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(address: Option<String>) -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = match address {
        Some(address) => {
            address.parse().map_err(|_| format!("{address:?} is no address like 127.0.0.1:8080"))?
        }
        None => ([127, 0, 0, 1], 8080).into(),
    };
    let store = Arc::new(Store::with_sample_books());
    let web = Web::new()
        // The shop's own pages serve all paths that are not the service's.
        .fallback(pages::router(Arc::clone(&store)))
        .openapi(true)
        .docs(true)
        // Allows pages of other origins to call the service, without this origin's cookies.
        .cors(Cors::default().origins(Origins::Any));
    // For grpcurl and similar tools.
    let reflection = Reflection::builder().descriptors(proto::FILE_DESCRIPTOR_SET).build()?;
    let server = Server::builder()
        .add_service(BookstoreServer::new(Service::new(store)))
        .add_service(reflection)
        .web(web)
        .bind(address)
        .await?;
    println!("the bookstore is at http://{}", server.local_addresses()[0]);
    server.serve_until(async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
