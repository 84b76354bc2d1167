//! `arrow-flight`: record batches there and back, with its own client and server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightClient, FlightData, FlightDescriptor, FlightEndpoint,
    FlightInfo, HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_schema::ArrowError;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

use crate::outcome::Outcome;

/// 8 batches of about 300 KiB.
const BATCHES: i64 = 8;
const ROWS: i64 = 10_000;

pub async fn drive(address: &str) -> Outcome {
    let channel = channel(address).await?;
    let mut client = FlightClient::new(channel.clone());
    client.add_header("x-token", "oak")?;
    println!("{:?}", client.handshake("who?").await?);

    let batches = (0..BATCHES).map(batch).collect::<Result<Vec<_>, _>>()?;
    let put = client.do_put(encoded(&batches, Some("trees"))).await?;
    let results: Vec<PutResult> = put.try_collect().await?;
    println!("{:?}", results.iter().map(|result| &result.app_metadata).collect::<Vec<_>>());

    let info = client.get_flight_info(FlightDescriptor::new_path(vec!["trees".to_owned()])).await?;
    println!("{} records", info.total_records);
    assert_eq!(&info.clone().try_decode_schema()?, batches[0].schema().as_ref());
    let ticket = info.endpoint[0].ticket.clone().ok_or("no ticket")?;
    let got: Vec<RecordBatch> = client.do_get(ticket).await?.try_collect().await?;
    assert!(got == batches, "other batches were returned");
    println!("{} batches of {} columns, sum {}", got.len(), got[0].num_columns(), sum(&got));

    let exchanged: Vec<RecordBatch> =
        client.do_exchange(encoded(&batches, None)).await?.try_collect().await?;
    assert!(exchanged == batches, "other batches were exchanged");

    let counted: Vec<_> = client.do_action(Action::new("count", "trees")).await?.try_collect().await?;
    println!("{counted:?}");
    for outcome in [
        client.do_get(Ticket::new("palms")).await.map(drop),
        client.do_action(Action::new("fell", "trees")).await.map(drop),
        client.list_actions().await.map(drop),
        FlightClient::new(channel).handshake("who?").await.map(drop),
    ] {
        match outcome {
            Err(FlightError::Tonic(status)) => println!("{:?}: {}", status.code(), status.message()),
            other => return Err(format!("unexpected result of a wrong request: {other:?}").into()),
        }
    }
    // The caller's own error ends the call.
    let broken = stream::iter([Err(FlightError::protocol("broken"))]);
    match client.do_exchange(broken).await?.try_collect::<Vec<_>>().await {
        Err(FlightError::ProtocolError(text)) => assert_eq!(text, "broken"),
        other => return Err(format!("unexpected result of a broken stream: {other:?}").into()),
    }
    Ok(())
}

/// A call for the rates: exchanges one batch.
pub async fn exchange(channel: Channel) -> Outcome {
    let batches = [batch(0)?];
    let exchanged = FlightClient::new(channel).do_exchange(encoded(&batches, None)).await?;
    let exchanged: Vec<RecordBatch> = exchanged.try_collect().await?;
    assert_eq!(exchanged.len(), batches.len());
    Ok(())
}

pub async fn channel(address: &str) -> Outcome<Channel> {
    Ok(Endpoint::from_shared(format!("http://{address}"))?.connect().await?)
}

fn batch(number: i64) -> Result<RecordBatch, ArrowError> {
    let rows = || number * ROWS..(number + 1) * ROWS;
    let names = rows().map(|row| (row % 3 != 0).then(|| format!("tree {row}")));
    let columns: [(&str, ArrayRef); 4] = [
        ("number", Arc::new(Int64Array::from_iter_values(rows()))),
        ("name", Arc::new(names.collect::<StringArray>())),
        ("height", Arc::new(Float64Array::from_iter_values(rows().map(|row| row as f64 / 8.0)))),
        ("is_old", Arc::new(rows().map(|row| Some(row % 2 == 0)).collect::<BooleanArray>())),
    ];
    // All are nullable, so that all batches have one schema.
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true)))
}

fn encoded(
    batches: &[RecordBatch],
    path: Option<&str>,
) -> impl futures::Stream<Item = Result<FlightData, FlightError>> + Send + use<> {
    let descriptor = path.map(|path| FlightDescriptor::new_path(vec![path.to_owned()]));
    let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(descriptor);
    encoder.build(stream::iter(batches.to_vec().into_iter().map(Ok)))
}

fn sum(batches: &[RecordBatch]) -> i64 {
    let numbers = |batch: &RecordBatch| {
        let numbers = batch.column(0).as_any().downcast_ref::<Int64Array>();
        numbers.expect("numbers").values().iter().sum::<i64>()
    };
    batches.iter().map(numbers).sum()
}

pub fn serve() -> FlightServiceServer<impl FlightService> {
    FlightServiceServer::new(Stored::default())
}

/// Keeps what was put, by its path.
#[derive(Default)]
struct Stored {
    flights: Mutex<HashMap<String, Vec<FlightData>>>,
}

impl Stored {
    fn flight(&self, name: &str) -> Result<Vec<FlightData>, Status> {
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.get(name).cloned().ok_or_else(|| Status::not_found(format!("no flight {name}")))
    }
}

fn path(descriptor: Option<&FlightDescriptor>) -> Result<String, Status> {
    let path = descriptor.and_then(|descriptor| descriptor.path.first());
    path.cloned().ok_or_else(|| Status::invalid_argument("no path"))
}

fn text(bytes: &[u8]) -> Result<&str, Status> {
    std::str::from_utf8(bytes).map_err(|error| Status::invalid_argument(error.to_string()))
}

async fn decoded(frames: Vec<FlightData>) -> Result<Vec<RecordBatch>, Status> {
    let batches = FlightRecordBatchStream::new_from_flight_data(stream::iter(frames.into_iter().map(Ok)));
    batches.try_collect().await.map_err(|error| Status::invalid_argument(error.to_string()))
}

type Responses<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for Stored {
    type HandshakeStream = Responses<HandshakeResponse>;
    type ListFlightsStream = Responses<FlightInfo>;
    type DoGetStream = Responses<FlightData>;
    type DoPutStream = Responses<PutResult>;
    type DoActionStream = Responses<arrow_flight::Result>;
    type ListActionsStream = Responses<ActionType>;
    type DoExchangeStream = Responses<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        if request.metadata().get("x-token").is_none() {
            return Err(Status::unauthenticated("no token"));
        }
        let response = |request: HandshakeRequest| HandshakeResponse {
            payload: [b"you said ", &request.payload[..]].concat().into(),
            ..HandshakeResponse::default()
        };
        Ok(Response::new(request.into_inner().map_ok(response).boxed()))
    }

    async fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let path = path(Some(request.get_ref()))?;
        let batches = decoded(self.flight(&path)?).await?;
        let schema = batches.first().ok_or_else(|| Status::not_found("no batches"))?.schema();
        let info = FlightInfo::new().try_with_schema(&schema);
        let info = info.map_err(|error| Status::internal(error.to_string()))?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(path));
        Ok(Response::new(info.with_endpoint(endpoint).with_total_records(rows as i64)))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let frames = self.flight(text(&request.get_ref().ticket)?)?;
        Ok(Response::new(stream::iter(frames.into_iter().map(Ok)).boxed()))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let frames: Vec<FlightData> = request.into_inner().try_collect().await?;
        let path = path(frames.first().and_then(|frame| frame.flight_descriptor.as_ref()))?;
        let batches = decoded(frames.clone()).await?;
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).insert(path, frames);
        let result = PutResult { app_metadata: format!("{} batches", batches.len()).into() };
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let Action { r#type, body } = request.into_inner();
        if r#type != "count" {
            return Err(Status::invalid_argument(format!("no action {}", r#type)));
        }
        let batches = decoded(self.flight(text(&body)?)?).await?;
        let rows =
            batches.into_iter().map(|batch| Ok(arrow_flight::Result::new(batch.num_rows().to_string())));
        Ok(Response::new(stream::iter(rows).boxed()))
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        Err(Status::unimplemented("list_flights"))
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        Err(Status::unimplemented("poll_flight_info"))
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        Err(Status::unimplemented("get_schema"))
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        Err(Status::unimplemented("list_actions"))
    }
}
