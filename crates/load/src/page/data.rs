//! Data for the page's script: numbers only.

use serde::Serialize;

use super::heat::{Heat, heat};
use super::over_time::{OverTime, over_time};
use super::spread::{Spread, spread};
use crate::run::LoadRun;

#[derive(Debug, Serialize)]
pub(super) struct PlotData {
    pub(super) time: Option<OverTime>,
    pub(super) heat: Option<Heat>,
    pub(super) spread: Option<Spread>,
}

pub(super) fn plot_data(run: &LoadRun) -> PlotData {
    let time = over_time(run);
    let heat = time.as_ref().and_then(|time| heat(run, &time.edges));
    PlotData { time, heat, spread: spread(run) }
}
