//! The JSON API on axum, with its `Json` and serde's derived structs, as in axum's documentation.

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderValue, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::stack_settings::BODY_SIZE_MAX;
use crate::times::{self, Times};

#[derive(Serialize, Deserialize)]
struct Strings {
    strings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Person {
    name: String,
    age: i32,
    #[serde(default)]
    hobbies: Vec<String>,
    address: Option<Address>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    city: String,
    zip_code: String,
}

pub fn router() -> Router {
    Router::new()
        .route("/v1/echo-strings", post(echo::<Strings>))
        .route("/v1/echo-person", post(echo::<Person>))
        .layer(DefaultBodyLimit::max(BODY_SIZE_MAX))
}

async fn echo<T: DeserializeOwned + Serialize>(request: JsonRequest<T>) -> JsonResponse<T> {
    match request {
        JsonRequest::Plain(Json(body)) => JsonResponse::Plain(Json(body)),
        JsonRequest::Timed(body, mut times) => {
            times.decoded = Some(times::now());
            // A real handler's work goes here.
            times.handled = Some(times::now());
            JsonResponse::Timed(body, times)
        }
    }
}

/// A request extracted by `Json`, or step by step to record the times in between.
enum JsonRequest<T> {
    Plain(Json<T>),
    Timed(T, Times),
}

enum JsonResponse<T> {
    Plain(Json<T>),
    Timed(T, Times),
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonRequest<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if !request.headers().contains_key(times::HEADER) {
            return Json::from_request(request, state)
                .await
                .map(Self::Plain)
                .map_err(IntoResponse::into_response);
        }
        let bytes = Bytes::from_request(request, state).await.map_err(IntoResponse::into_response)?;
        let times = Times { received: Some(times::now()), ..Times::default() };
        let body = serde_json::from_slice(&bytes);
        body.map(|body| Self::Timed(body, times))
            .map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()).into_response())
    }
}

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        let (body, mut times) = match self {
            Self::Plain(json) => return json.into_response(),
            Self::Timed(body, times) => (body, times),
        };
        let bytes = match serde_json::to_vec(&body) {
            Ok(bytes) => bytes,
            Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        };
        times.encoded = Some(times::now());
        let times = HeaderValue::from_str(&times.to_string()).expect("words and digits");
        let json = HeaderValue::from_static("application/json");
        ([("content-type", json), (times::HEADER, times)], bytes).into_response()
    }
}
