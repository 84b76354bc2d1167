//! Servers kept for a whole study.

use std::collections::BTreeMap;

use super::server::Server;
use crate::stack::Stack;
use crate::study::ExecuteError;

/// Key of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerKey {
    pub(super) stack: Stack,
    /// Whether it is the second server of the stack, for the noise floor.
    pub(super) is_twin: bool,
}

/// Servers by key, each started on first use. A server that exits is restarted once, but ours must not exit.
#[derive(Debug, Default)]
pub(super) struct Servers(BTreeMap<ServerKey, ServerState>);

/// State of a server.
#[derive(Debug)]
enum ServerState {
    Serving {
        server: Server,
        restarted: bool,
    },
    /// It exited twice or could not be started, with the last reason.
    Gone(String),
}

impl Servers {
    #[cfg(test)]
    pub(super) fn all_serving(&mut self) -> impl Iterator<Item = &mut Server> {
        self.0.values_mut().filter_map(|state| match state {
            ServerState::Serving { server, .. } => Some(server),
            ServerState::Gone(_) => None,
        })
    }

    /// Adds a server that was just started.
    pub(super) fn insert(&mut self, key: &ServerKey, server: Server) {
        self.0.insert(key.clone(), ServerState::Serving { server, restarted: false });
    }

    /// Returns the server for a window, calling `start` if it is not running.
    pub(super) fn get_or_start(
        &mut self,
        key: &ServerKey,
        start: impl FnOnce() -> Result<Server, String>,
    ) -> Result<&mut Server, ExecuteError> {
        let ended = match self.0.get_mut(key) {
            None => Some((None, false)),
            Some(ServerState::Gone(why)) => return Err(ExecuteError::Window(why.clone())),
            Some(ServerState::Serving { server, restarted }) => {
                server.exit_reason().map(|why| (Some(why), *restarted))
            }
        };
        if let Some((why, restarted)) = ended {
            let started = match why {
                Some(why) if key.stack.is_ours() => return Err(ExecuteError::Study(why)),
                Some(why) if restarted => Err(format!("{}, repeatedly", why.trim_end())),
                why => start().map(|server| ServerState::Serving { server, restarted: why.is_some() }),
            };
            match started {
                Err(why) if key.stack.is_ours() => return Err(ExecuteError::Study(why)),
                started => drop(self.0.insert(key.clone(), started.unwrap_or_else(ServerState::Gone))),
            }
        }
        match self.0.get_mut(key) {
            Some(ServerState::Serving { server, .. }) => Ok(server),
            Some(ServerState::Gone(why)) => Err(ExecuteError::Window(why.clone())),
            None => Err(ExecuteError::Window(format!("no server of {}", key.stack))),
        }
    }

    /// Discards results of a server that exited during the window. If ours exited, the study ends.
    pub(super) fn check_result<T>(
        &mut self,
        key: &ServerKey,
        found: Result<T, ExecuteError>,
    ) -> Result<T, ExecuteError> {
        let Some(ServerState::Serving { server, .. }) = self.0.get_mut(key) else { return found };
        match found {
            Err(ExecuteError::Interrupted) => found,
            _ if !server.has_exited() => found,
            _ if key.stack.is_ours() => {
                server.exit_reason().map_or(found, |why| Err(ExecuteError::Study(why)))
            }
            Err(ExecuteError::Window(reason)) => {
                Err(ExecuteError::Window(format!("{reason}; the server exited")))
            }
            _ => Err(ExecuteError::Window("the server exited during the window".to_owned())),
        }
    }
}
