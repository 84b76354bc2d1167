//! Guides travellers on a river, with all four call types. Its client is `routeguide-client`.
//!
//! Run it with `cargo run -p thalweg-examples --example routeguide-server -- [ADDRESS]`.

use std::env;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use routeguide::route_guide_server::{RouteGuide, RouteGuideServer};
use routeguide::{Landing, Place, Reach, Sighting, Sightings, Trip};
use thalweg::{Request, Response, Server, Status, Stream, Streaming};
use tokio_stream::StreamExt as _;

mod routeguide {
    #![allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
    thalweg::include_proto!("routeguide");
}

/// A stream of responses. Any `Stream` type works; a boxed one needs no named type.
type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Maximum distance of reported sightings.
const NEAR_METRES: u32 = 500;

struct Guide {
    landings: Vec<Landing>,
    sightings: Arc<Mutex<Vec<Sighting>>>,
}

impl Guide {
    fn new() -> Self {
        let landings = [("Mill", 1_200), ("Ferry", 4_800), ("Old Bridge", 7_500), ("Harbour", 12_000)];
        let landing =
            |(name, metres): (&str, u32)| Landing { name: name.to_owned(), place: Some(Place { metres }) };
        Self { landings: landings.map(landing).into(), sightings: Arc::default() }
    }
}

impl RouteGuide for Guide {
    async fn nearest(&self, request: Request<Place>) -> Result<Response<Landing>, Status> {
        let here = request.into_inner().metres;
        let nearest = self.landings.iter().min_by_key(|landing| metres(landing.place).abs_diff(here));
        // An error is a `Status`: its code is for programs, its message for people.
        nearest.cloned().map(Response::new).ok_or_else(|| Status::not_found("the river has no landing"))
    }

    type AlongStream = ResponseStream<Landing>;

    async fn along(&self, request: Request<Reach>) -> Result<Response<Self::AlongStream>, Status> {
        let Reach { from_metres, to_metres } = request.into_inner();
        if from_metres > to_metres {
            return Err(Status::invalid_argument("a reach goes downstream"));
        }
        let mut landings = self.landings.clone();
        landings.retain(|landing| (from_metres..=to_metres).contains(&metres(landing.place)));
        // The next landing is pulled from the stream only when there is room to send it.
        Ok(Response::new(Box::pin(tokio_stream::iter(landings.into_iter().map(Ok)))))
    }

    async fn travel(&self, request: Request<Streaming<Place>>) -> Result<Response<Trip>, Status> {
        let mut places = request.into_inner();
        let (mut trip, mut last) = (Trip::default(), None);
        // `None` is the client's end of stream. A client that goes away earlier causes an error, which ends the handler
        // here.
        while let Some(Place { metres }) = places.message().await? {
            trip.places += 1;
            trip.metres += last.map_or(0, |last| metres.abs_diff(last));
            last = Some(metres);
        }
        Ok(Response::new(trip))
    }

    type ReportStream = ResponseStream<Sightings>;

    async fn report(
        &self,
        request: Request<Streaming<Sighting>>,
    ) -> Result<Response<Self::ReportStream>, Status> {
        let all = Arc::clone(&self.sightings);
        // No task is needed: the response stream maps the request stream, and is polled when a response can be sent.
        let responses = request.into_inner().map(move |sighting| {
            let sighting = sighting?;
            let here = metres(sighting.place);
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            let near = all.iter().filter(|other| metres(other.place).abs_diff(here) <= NEAR_METRES);
            let sightings = near.cloned().collect();
            all.push(sighting);
            Ok(Sightings { sightings })
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

/// An absent submessage means its default: the source.
fn metres(place: Option<Place>) -> u32 {
    place.map_or(0, |place| place.metres)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:50051".to_owned());
    let guide = RouteGuideServer::new(Guide::new());
    let server = Server::builder().add_service(guide).bind(&[address.parse()?]).await?;
    println!("listening on {}", server.local_addresses()[0]);
    server.serve_until(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await?;
    Ok(())
}
