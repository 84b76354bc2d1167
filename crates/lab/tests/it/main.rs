//! Studies, their results and pages: one binary for all modules.

mod codec;
mod drive;
mod report_browser;
mod sample;
mod study;
