//! Arrow Flight over TCP: `serve ADDRESS`, and `drive METHOD ADDRESS ROWS COLUMNS SECONDS`, which prints MiB/s. `decode
//! OFFSET ROWS COLUMNS SECONDS` prints MiB/s of decoding alone, for data OFFSET bytes past a multiple of 64. It also
//! prints how many of the batch's buffers refer to the data without a copy.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightClient, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, SchemaResult, Ticket,
};
use arrow_schema::{DataType, Field, Schema};
use futures::stream::{self, BoxStream};
use futures::{StreamExt as _, TryStreamExt as _};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Size limit of a message.
const MESSAGE_MAX: usize = 64 << 20;
/// Batches of a stream.
const BATCHES: usize = 16;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| match args[..] {
        ["serve", address] => runtime.block_on(serve(address)),
        ["drive", method, address, rows, columns, seconds] => runtime.block_on(async {
            let batch = batch(rows.parse()?, columns.parse()?)?;
            let driving = drive(method.to_owned(), address.to_owned(), batch, seconds.parse()?);
            println!("{:.1}", tokio::spawn(driving).await??);
            Ok(())
        }),
        ["decode", offset, rows, columns, seconds] => runtime.block_on(async {
            let batch = batch(rows.parse()?, columns.parse()?)?;
            let (rate, shared_buffers) = decode(offset.parse()?, batch, seconds.parse()?).await?;
            println!("{rate:.1} {shared_buffers}");
            Ok(())
        }),
        _ => Err(format!("unknown command `{}`", args.join(" ")).into()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A batch of fixed width, like in arrow-flight's benchmark.
fn batch(rows: usize, columns: usize) -> Outcome<RecordBatch> {
    let column = |_| Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef;
    let columns: Vec<ArrayRef> = (0..columns).map(column).collect();
    let field = |number| Field::new(format!("column_{number}"), DataType::Int64, false);
    let schema = Schema::new((0..columns.len()).map(field).collect::<Vec<_>>());
    Ok(RecordBatch::try_new(Arc::new(schema), columns)?)
}

async fn serve(address: &str) -> Outcome {
    let service = FlightServiceServer::new(Stored::default())
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(MESSAGE_MAX);
    Server::builder().tcp_nodelay(true).add_service(service).serve(address.parse()?).await?;
    Ok(())
}

/// MiB of arrays per second in one direction.
async fn drive(method: String, address: String, batch: RecordBatch, time: f64) -> Outcome<f64> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
    let inner = arrow_flight::flight_service_client::FlightServiceClient::new(endpoint.connect().await?)
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(MESSAGE_MAX);
    let mut client = FlightClient::new_from_inner(inner);
    let ask = FlightDataEncoderBuilder::new().with_max_flight_data_size(MESSAGE_MAX);
    let frames: Vec<FlightData> =
        ask.build(stream::iter(std::iter::repeat_n(batch.clone(), BATCHES).map(Ok))).try_collect().await?;
    let size = (batch.get_array_memory_size() * BATCHES) as f64 / f64::from(1 << 20);
    if method == "get" {
        put(&mut client, frames.clone()).await?;
    }
    let (warm_up, time) = (Duration::from_secs_f64(time / 4.0), Duration::from_secs_f64(time));
    let mut begin = Instant::now();
    let mut streams = 0;
    let mut is_warm = false;
    loop {
        match method.as_str() {
            "get" => {
                let batches: Vec<RecordBatch> = client.do_get(Ticket::default()).await?.try_collect().await?;
                assert!(
                    batches.len() == BATCHES && batches[BATCHES - 1] == batch,
                    "{} batches",
                    batches.len()
                );
            }
            "put" => put(&mut client, frames.clone()).await?,
            "exchange" => {
                let frames = stream::iter(frames.clone().into_iter().map(Ok));
                let batches: Vec<RecordBatch> = client.do_exchange(frames).await?.try_collect().await?;
                assert!(
                    batches.len() == BATCHES && batches[BATCHES - 1] == batch,
                    "{} batches",
                    batches.len()
                );
            }
            _ => return Err(format!("there is no method {method}").into()),
        }
        streams += 1;
        if !is_warm && begin.elapsed() > warm_up {
            (begin, streams, is_warm) = (Instant::now(), 0, true);
        } else if begin.elapsed() > time {
            return Ok(f64::from(streams) * size / begin.elapsed().as_secs_f64());
        }
    }
}

async fn put(client: &mut FlightClient, frames: Vec<FlightData>) -> Outcome {
    let results = client.do_put(stream::iter(frames.into_iter().map(Ok))).await?;
    let results: Vec<PutResult> = results.try_collect().await?;
    match &results[..] {
        [one] if one.app_metadata == BATCHES.to_string() => Ok(()),
        _ => Err(format!("{results:?}").into()),
    }
}

async fn decode(offset: usize, batch: RecordBatch, time: f64) -> Outcome<(f64, usize)> {
    let size = batch.get_array_memory_size() as f64 / f64::from(1 << 20);
    let encoder = FlightDataEncoderBuilder::new().with_max_flight_data_size(MESSAGE_MAX);
    let mut frames: Vec<FlightData> = encoder.build(stream::iter([Ok(batch)])).try_collect().await?;
    for frame in &mut frames {
        let space = vec![0; frame.data_body.len() + 64 + offset];
        let begin = space.as_ptr().align_offset(64) + offset;
        let mut space = space;
        space[begin..begin + frame.data_body.len()].copy_from_slice(&frame.data_body);
        frame.data_body = bytes::Bytes::from(space).slice(begin..begin + frame.data_body.len());
    }
    let data = frames[frames.len() - 1].data_body.as_ptr_range();
    let begin = Instant::now();
    let mut count = 0;
    loop {
        let received = stream::iter(frames.clone().into_iter().map(Ok));
        let batches = FlightRecordBatchStream::new_from_flight_data(received);
        let batches: Vec<RecordBatch> = batches.try_collect().await?;
        count += 1;
        if begin.elapsed() > Duration::from_secs_f64(time) {
            let columns = batches[0].columns().iter().map(|column| column.to_data().buffers()[0].as_ptr());
            let shared_buffers = columns.filter(|buffer| data.contains(buffer)).count();
            return Ok((f64::from(count) * size / begin.elapsed().as_secs_f64(), shared_buffers));
        }
    }
}

/// Stores the last batch put and returns it.
#[derive(Clone, Default)]
struct Stored {
    frames: Arc<std::sync::Mutex<Vec<FlightData>>>,
}

fn not_here<T>() -> Result<T, Status> {
    Err(Status::unimplemented("not here"))
}

#[tonic::async_trait]
impl FlightService for Stored {
    type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, Result<PutResult, Status>>;
    type DoActionStream = BoxStream<'static, Result<arrow_flight::Result, Status>>;
    type ListActionsStream = BoxStream<'static, Result<ActionType, Status>>;
    type DoExchangeStream = BoxStream<'static, Result<FlightData, Status>>;

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let frames = self.frames.lock().expect("the lock is not poisoned").clone();
        Ok(Response::new(stream::iter(frames.into_iter().map(Ok)).boxed()))
    }

    async fn do_put(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        let frames: Vec<FlightData> = request.into_inner().try_collect().await?;
        let received = stream::iter(frames.clone().into_iter().map(Ok));
        let batches = FlightRecordBatchStream::new_from_flight_data(received);
        let batches: Vec<RecordBatch> = batches.try_collect().await?;
        *self.frames.lock().expect("the lock is not poisoned") = frames;
        let result = PutResult { app_metadata: batches.len().to_string().into() };
        Ok(Response::new(stream::iter([Ok(result)]).boxed()))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        not_here()
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        not_here()
    }

    async fn get_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        not_here()
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        not_here()
    }

    async fn get_schema(&self, _: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        not_here()
    }

    async fn do_action(&self, _: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        not_here()
    }

    async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        not_here()
    }
}
