//! Our load generator and others at one of our servers. Measures the generator's cost per call, its report on a server
//! that stalls, and whether it keeps the requested rate.

mod cost;
mod generator;
mod rate;
mod report;
mod stopped;

use super::pair::SERVER;
use super::table::Table;
use crate::failure::Result;
use crate::peers::BuiltPeer;
use crate::server::Server;

use generator::Generators;

pub(super) fn run(peers: &[BuiltPeer]) -> Result<Vec<Table>> {
    let [ours] = peers else { bail!("these need our own server") };
    let server = Server::start(|port| ours.serve(port).under(SERVER))?;
    let generators = Generators::get(&ours.program, server.port())?;
    let mut tables = cost::run(&generators)?;
    tables.extend(stopped::run(&generators, &server)?);
    tables.extend(rate::run(&generators)?);
    server.stop()?;
    // Summaries come before the tables of single rounds.
    tables.sort_by_key(Table::is_of_rounds);
    Ok(tables)
}
