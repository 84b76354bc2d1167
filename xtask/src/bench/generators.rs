//! Load generators beside ours, at one server of ours: what a call costs the generator, what it says of a server that
//! stands still, and whether it keeps the rate that it is asked for.

mod cost;
mod generator;
mod rate;
mod report;
mod stopped;

use crate::bench::cores;
use crate::bench::table::Table;
use crate::job::{Failure, Log};
use crate::peers::BuiltPeer;
use crate::server::{Server, free_port};

use generator::Generators;

pub(super) fn run(peers: &[BuiltPeer], log: &Log) -> Result<Vec<Table>, Failure> {
    let [ours] = peers else { return Err(Failure::failed("the server of these is ours alone")) };
    let port = free_port()?;
    let generators = Generators::get(&ours.program, port, log)?;
    let server = Server::start(&ours.serve(port).under(cores::SERVER), port, log)?;
    let mut tables = cost::run(&generators, log)?;
    tables.extend(stopped::run(&generators, &server, log)?);
    tables.extend(rate::run(&generators, log)?);
    server.stop()?;
    // What every round found stands behind what comes of it.
    tables.sort_by_key(Table::is_of_rounds);
    Ok(tables)
}
