//! `qdrant-client`, with a stub: collections and points in memory; queries find all of them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use ::qdrant_client::qdrant::collections_server::{Collections, CollectionsServer};
use ::qdrant_client::qdrant::points_server::{Points, PointsServer};
use ::qdrant_client::qdrant::qdrant_server::{Qdrant as Health, QdrantServer};
use ::qdrant_client::qdrant::*;
use ::qdrant_client::{Payload, Qdrant, QdrantError};
use tonic::{Code, Request, Response, Status};

use crate::outcome::Outcome;

const DIMENSIONS: usize = 512;
/// Some megabytes.
const POINTS: u64 = 1000;

pub async fn drive(address: &str) -> Outcome {
    let client = client(address)?;
    assert_eq!(client.health_check().await?.title, "stub");
    let name = format!("forest {}", std::process::id());
    assert!(!client.collection_exists(&name).await?);
    let vectors = VectorParamsBuilder::new(DIMENSIONS as u64, Distance::Cosine);
    client.create_collection(CreateCollectionBuilder::new(&name).vectors_config(vectors)).await?;
    assert!(client.collection_exists(&name).await?);

    let point = |number: u64| {
        let payload = Payload::from([("number", (number as i64).into())]);
        PointStruct::new(number, vec![number as f32; DIMENSIONS], payload)
    };
    let points: Vec<_> = (0..POINTS).map(point).collect();
    let done = client.upsert_points(UpsertPointsBuilder::new(&name, points)).await?;
    assert_eq!(done.result.and_then(|result| result.operation_id), Some(POINTS));

    let query = QueryPointsBuilder::new(&name).query(vec![1.0; DIMENSIONS]).limit(3).with_payload(true);
    let found = client.query(query).await?.result;
    let numbers: Vec<_> = found.iter().map(|point| point.payload["number"].as_integer()).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);

    // The client's own conversion from a status.
    let nobody = client.query(QueryPointsBuilder::new("nobody").query(vec![1.0])).await;
    match nobody {
        Err(QdrantError::ResponseError { status }) if status.code() == Code::NotFound => {}
        other => {
            return Err(format!("unexpected result of a query of an unknown collection: {other:?}").into());
        }
    }
    match client.delete_collection(&name).await {
        Err(QdrantError::ResponseError { status }) if status.code() == Code::Unimplemented => {}
        other => return Err(format!("unexpected result of a call to an unserved method: {other:?}").into()),
    }
    let stranger = Qdrant::from_url(&format!("http://{address}")).build()?;
    match stranger.collection_exists(&name).await {
        Err(QdrantError::ResponseError { status }) if status.code() == Code::Unauthenticated => Ok(()),
        other => Err(format!("unexpected result of a call without a key: {other:?}").into()),
    }
}

pub fn client(address: &str) -> Outcome<Qdrant> {
    Ok(Qdrant::from_url(&format!("http://{address}")).api_key("key").build()?)
}

/// A call for the rates.
pub async fn check(client: Arc<Qdrant>) -> Outcome {
    client.health_check().await?;
    Ok(())
}

struct Stub;

/// The points of each collection.
type Stored = HashMap<String, Vec<PointStruct>>;

fn stored() -> MutexGuard<'static, Stored> {
    static STORED: LazyLock<Mutex<Stored>> = LazyLock::new(Mutex::default);
    STORED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn collections() -> CollectionsServer<impl Collections> {
    CollectionsServer::new(Stub)
}

pub fn points() -> PointsServer<impl Points> {
    PointsServer::new(Stub).max_decoding_message_size(64 << 20)
}

pub fn health() -> QdrantServer<impl Health> {
    QdrantServer::new(Stub)
}

/// A service that implements only some methods.
macro_rules! serve {
    (
        $service:ident:
        $($served:ident($request:ident: $served_in:ident) -> $served_out:ident $body:block)*
        => $($name:ident($in:ident) -> $out:ident;)*
    ) => {
        #[tonic::async_trait]
        impl $service for Stub {
            $(async fn $served(&self, $request: Request<$served_in>) -> Result<Response<$served_out>, Status> $body)*
            $(async fn $name(&self, _: Request<$in>) -> Result<Response<$out>, Status> {
                Err(Status::unimplemented(stringify!($name)))
            })*
        }
    };
}

serve! {
    Health:
    health_check(_request: HealthCheckRequest) -> HealthCheckReply {
        let version = "1.20.0".to_owned();
        Ok(Response::new(HealthCheckReply { title: "stub".to_owned(), version, commit: None }))
    }
    =>
}

serve! {
    Collections:
    create(request: CreateCollection) -> CollectionOperationResponse {
        stored().insert(request.into_inner().collection_name, Vec::new());
        Ok(Response::new(CollectionOperationResponse { result: true, time: 0.0 }))
    }
    collection_exists(request: CollectionExistsRequest) -> CollectionExistsResponse {
        if request.metadata().get("api-key").is_none() {
            return Err(Status::unauthenticated("without a key"));
        }
        let exists = stored().contains_key(&request.into_inner().collection_name);
        let result = Some(CollectionExists { exists });
        Ok(Response::new(CollectionExistsResponse { result, time: 0.0 }))
    }
    =>
        get(GetCollectionInfoRequest) -> GetCollectionInfoResponse;
        list(ListCollectionsRequest) -> ListCollectionsResponse;
        update(UpdateCollection) -> CollectionOperationResponse;
        delete(DeleteCollection) -> CollectionOperationResponse;
        update_aliases(ChangeAliases) -> CollectionOperationResponse;
        list_collection_aliases(ListCollectionAliasesRequest) -> ListAliasesResponse;
        list_aliases(ListAliasesRequest) -> ListAliasesResponse;
        collection_cluster_info(CollectionClusterInfoRequest) -> CollectionClusterInfoResponse;
        update_collection_cluster_setup(UpdateCollectionClusterSetupRequest) -> UpdateCollectionClusterSetupResponse;
        create_shard_key(CreateShardKeyRequest) -> CreateShardKeyResponse;
        delete_shard_key(DeleteShardKeyRequest) -> DeleteShardKeyResponse;
        list_shard_keys(ListShardKeysRequest) -> ListShardKeysResponse;
}

serve! {
    Points:
    upsert(request: UpsertPoints) -> PointsOperationResponse {
        let UpsertPoints { collection_name, points, .. } = request.into_inner();
        let mut stored = stored();
        let all = stored.get_mut(&collection_name).ok_or_else(|| Status::not_found(collection_name))?;
        all.extend(points);
        let result = UpdateResult { operation_id: Some(all.len() as u64), ..UpdateResult::default() };
        Ok(Response::new(PointsOperationResponse { result: Some(result), time: 0.0, usage: None }))
    }
    query(request: QueryPoints) -> QueryResponse {
        let QueryPoints { collection_name, limit, .. } = request.into_inner();
        let stored = stored();
        let all = stored.get(&collection_name).ok_or_else(|| Status::not_found(collection_name))?;
        let scored = |point: &PointStruct| ScoredPoint {
            id: point.id.clone(),
            payload: point.payload.clone(),
            ..ScoredPoint::default()
        };
        let result = all.iter().take(limit.unwrap_or(10) as usize).map(scored).collect();
        Ok(Response::new(QueryResponse { result, time: 0.0, usage: None }))
    }
    =>
        delete(DeletePoints) -> PointsOperationResponse;
        get(GetPoints) -> GetResponse;
        update_vectors(UpdatePointVectors) -> PointsOperationResponse;
        delete_vectors(DeletePointVectors) -> PointsOperationResponse;
        set_payload(SetPayloadPoints) -> PointsOperationResponse;
        overwrite_payload(SetPayloadPoints) -> PointsOperationResponse;
        delete_payload(DeletePayloadPoints) -> PointsOperationResponse;
        clear_payload(ClearPayloadPoints) -> PointsOperationResponse;
        create_field_index(CreateFieldIndexCollection) -> PointsOperationResponse;
        delete_field_index(DeleteFieldIndexCollection) -> PointsOperationResponse;
        create_vector_name(CreateVectorNameRequest) -> PointsOperationResponse;
        delete_vector_name(DeleteVectorNameRequest) -> PointsOperationResponse;
        search(SearchPoints) -> SearchResponse;
        search_batch(SearchBatchPoints) -> SearchBatchResponse;
        search_groups(SearchPointGroups) -> SearchGroupsResponse;
        scroll(ScrollPoints) -> ScrollResponse;
        recommend(RecommendPoints) -> RecommendResponse;
        recommend_batch(RecommendBatchPoints) -> RecommendBatchResponse;
        recommend_groups(RecommendPointGroups) -> RecommendGroupsResponse;
        discover(DiscoverPoints) -> DiscoverResponse;
        discover_batch(DiscoverBatchPoints) -> DiscoverBatchResponse;
        count(CountPoints) -> CountResponse;
        update_batch(UpdateBatchPoints) -> UpdateBatchResponse;
        query_batch(QueryBatchPoints) -> QueryBatchResponse;
        query_groups(QueryPointGroups) -> QueryGroupsResponse;
        facet(FacetCounts) -> FacetResponse;
        search_matrix_pairs(SearchMatrixPoints) -> SearchMatrixPairsResponse;
        search_matrix_offsets(SearchMatrixPoints) -> SearchMatrixOffsetsResponse;
}
