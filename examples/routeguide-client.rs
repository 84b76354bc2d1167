//! Calls `routeguide-server` with all four call types.
//!
//! Run it with `cargo run -p thalweg-examples --example routeguide-client -- [TARGET]`. With a freshly started server
//! it prints:
//!
//! ```text
//! the nearest landing is Ferry
//! past Ferry, at 4800 m
//! past Old Bridge, at 7500 m
//! 3 places, 7300 m
//! a heron: no earlier sightings
//! a low branch: no earlier sightings
//! a second heron: others saw a heron
//! ```

use std::env;
use std::error::Error;

use routeguide::route_guide_client::RouteGuideClient;
use routeguide::{Place, Reach, Sighting};
use thalweg::Channel;

mod routeguide {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("routeguide");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let target = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let guide = RouteGuideClient::connect(target).await?;
    nearest(&guide).await?;
    along(&guide).await?;
    travel(&guide).await?;
    report(&guide).await?;
    Ok(())
}

type Guide = RouteGuideClient<Channel>;

/// Unary: one request, one response.
async fn nearest(guide: &Guide) -> Result<(), Box<dyn Error>> {
    let landing = guide.nearest(Place { metres: 5_000 }).await?.into_inner();
    println!("the nearest landing is {}", landing.name);
    Ok(())
}

/// Server streaming: one request, a stream of responses. To stop early, drop the stream.
async fn along(guide: &Guide) -> Result<(), Box<dyn Error>> {
    let reach = Reach { from_metres: 2_000, to_metres: 10_000 };
    let mut landings = guide.along(reach).await?.into_inner();
    while let Some(landing) = landings.message().await? {
        println!("past {}, at {} m", landing.name, landing.place.unwrap_or_default().metres);
    }
    Ok(())
}

/// Client streaming: a stream of requests, which may be any `Stream`, and one response.
async fn travel(guide: &Guide) -> Result<(), Box<dyn Error>> {
    let places = [1_200, 7_500, 6_500].map(|metres| Place { metres });
    let trip = guide.travel(tokio_stream::iter(places)).await?.into_inner();
    println!("{} places, {} m", trip.places, trip.metres);
    Ok(())
}

/// Bidirectional streaming: requests are sent while responses are read.
async fn report(guide: &Guide) -> Result<(), Box<dyn Error>> {
    let sightings = [(3_000, "a heron"), (9_000, "a low branch"), (3_400, "a second heron")];
    let reports =
        sightings.map(|(metres, text)| Sighting { place: Some(Place { metres }), text: text.to_owned() });
    let mut responses = guide.report(tokio_stream::iter(reports)).await?.into_inner();
    for (_, text) in sightings {
        let Some(response) = responses.message().await? else { break };
        match &*response.sightings {
            [] => println!("{text}: no earlier sightings"),
            others => {
                let others: Vec<&str> = others.iter().map(|other| &*other.text).collect();
                println!("{text}: others saw {}", others.join(" and "));
            }
        }
    }
    Ok(())
}
