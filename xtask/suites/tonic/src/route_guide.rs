//! `routeguide`, with two of its features.

use std::collections::HashMap;

use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::pb::routeguide::{Feature, Point, Rectangle, RouteNote, RouteSummary, route_guide_server};

const FEATURES: [(&str, i32, i32); 2] = [
    ("Berkshire Valley Management Area Trail, Jefferson, NJ, USA", 409_146_138, -746_188_906),
    ("Patriots Path, Mendham, NJ 07945, USA", 407_838_351, -746_143_763),
];

pub struct RouteGuide {
    features: Vec<Feature>,
}

impl Default for RouteGuide {
    fn default() -> Self {
        let feature = |(name, latitude, longitude): (&str, i32, i32)| Feature {
            name: name.to_owned(),
            location: Some(Point { latitude, longitude }),
        };
        Self { features: FEATURES.map(feature).into() }
    }
}

#[tonic::async_trait]
impl route_guide_server::RouteGuide for RouteGuide {
    async fn get_feature(&self, request: Request<Point>) -> Result<Response<Feature>, Status> {
        let is_here = |feature: &&Feature| feature.location.as_ref() == Some(request.get_ref());
        Ok(Response::new(self.features.iter().find(is_here).cloned().unwrap_or_default()))
    }

    type ListFeaturesStream = ReceiverStream<Result<Feature, Status>>;

    async fn list_features(
        &self,
        request: Request<Rectangle>,
    ) -> Result<Response<Self::ListFeaturesStream>, Status> {
        let Rectangle { lo: Some(lo), hi: Some(hi) } = request.into_inner() else {
            return Err(Status::invalid_argument("a rectangle has two corners"));
        };
        let (sender, receiver) = mpsc::channel(4);
        let features = self.features.clone();
        tokio::spawn(async move {
            for feature in features.into_iter().filter(|feature| is_within(feature, &lo, &hi)) {
                if sender.send(Ok(feature)).await.is_err() {
                    break;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn record_route(
        &self,
        request: Request<Streaming<Point>>,
    ) -> Result<Response<RouteSummary>, Status> {
        let mut points = request.into_inner();
        let mut summary = RouteSummary::default();
        while let Some(point) = points.next().await {
            let point = point?;
            summary.point_count += 1;
            let is_here = |feature: &&Feature| feature.location.as_ref() == Some(&point);
            summary.feature_count += self.features.iter().filter(is_here).count() as i32;
        }
        Ok(Response::new(summary))
    }

    type RouteChatStream = ReceiverStream<Result<RouteNote, Status>>;

    async fn route_chat(
        &self,
        request: Request<Streaming<RouteNote>>,
    ) -> Result<Response<Self::RouteChatStream>, Status> {
        let mut requests = request.into_inner();
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            let mut notes: HashMap<Option<Point>, Vec<RouteNote>> = HashMap::new();
            while let Some(Ok(note)) = requests.next().await {
                let here = notes.entry(note.location).or_default();
                here.push(note);
                for note in here.iter() {
                    if sender.send(Ok(note.clone())).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}

fn is_within(feature: &Feature, lo: &Point, hi: &Point) -> bool {
    let within = |value: i32, one: i32, other: i32| (one.min(other)..=one.max(other)).contains(&value);
    feature.location.as_ref().is_some_and(|at| {
        within(at.latitude, lo.latitude, hi.latitude) && within(at.longitude, lo.longitude, hi.longitude)
    })
}
