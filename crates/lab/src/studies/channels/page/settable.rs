//! Configuration of each stack for several connections to one server.

use maud::{Markup, html};

use crate::load::{LabResults, StackInfo};
use crate::stack::OURS;

/// Configuration of a stack.
struct Settable {
    name: &'static str,
    about: &'static str,
    code: &'static str,
}

const SETTABLE: &[Settable] = &[
    Settable {
        name: OURS,
        about: "Nothing: a channel finds its number automatically. Set a number, or bounds, if you know them.",
        code: "let channel = Channel::builder(\"http://server:50051\").lanes(8).connect_lazy()?;",
    },
    Settable {
        name: "tonic",
        about: "A channel is one connection. A balanced channel has several, each with its own key.",
        code: "let (channel, change) = Channel::balance_channel::<usize>(8);\n\
               for key in 0..8 { change.send(Change::Insert(key, endpoint.clone())).await?; }",
    },
    Settable {
        name: "grpc-cpp",
        about: "Channels with equal arguments share a connection. To avoid that, give each channel its own pool, or a \
                different argument; the program uses the channels in turn.",
        code: "grpc::ChannelArguments arguments;\n\
               arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // or: SetInt(\"channel.number\", n)\n\
               auto channel = grpc::CreateCustomChannel(target, credentials, arguments);",
    },
    Settable {
        name: "grpc-go",
        about: "Each client has its own connections: create several clients, which the program uses in turn.",
        code: "connections[n], err = grpc.NewClient(target, options...)",
    },
];

/// Lists the configurations of the stacks that took part.
pub(super) fn list(results: &LabResults) -> Markup {
    let took_part =
        |it: &&Settable| results.stacks.iter().any(|info: &StackInfo| info.stack.name() == it.name);
    html! {
        dl.settable {
            @for Settable { name, about, code } in SETTABLE.iter().filter(took_part) {
                dt { (name) }
                dd { p { (about) } pre { code { (code) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn settings_are_listed_for_each_participating_stack() {
        let shown = super::list(&crate::tests::sample::channels::quick()).into_string();
        assert!(
            shown.contains("GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL") && shown.contains(".lanes(8)"),
            "{shown}"
        );
        assert!(!shown.contains("grpc.NewClient"), "{shown}");
    }
}
