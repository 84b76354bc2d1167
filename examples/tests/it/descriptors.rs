//! Services with embedded descriptors, for messages of prost and of buffa.

use std::pin::Pin;

use thalweg::prost::Message as _;
use thalweg::server::{InterceptedService, Service};
use thalweg::{Request, Response, Server, Status, Stream, Streaming};

#[allow(dead_code, unreachable_pub, clippy::pedantic, reason = "generated code")]
mod helloworld {
    thalweg::include_proto!("helloworld");
}

#[allow(dead_code, unreachable_pub, unused_imports, clippy::all, clippy::pedantic, reason = "generated code")]
mod notes {
    thalweg::include_proto!("notes");
}

struct Nobody;

impl helloworld::greeter_server::Greeter for Nobody {
    async fn say_hello(
        &self,
        _: Request<helloworld::HelloRequest>,
    ) -> Result<Response<helloworld::HelloReply>, Status> {
        Err(Status::unimplemented(""))
    }
}

impl notes::notes_server::Notes for Nobody {
    async fn count_words(
        &self,
        _: Request<thalweg::View<notes::NoteView<'static>>>,
    ) -> Result<Response<notes::WordCounts>, Status> {
        Err(Status::unimplemented(""))
    }

    type EchoStream = Pin<Box<dyn Stream<Item = Result<notes::Note, Status>> + Send>>;

    async fn echo(
        &self,
        _: Request<Streaming<thalweg::View<notes::NoteView<'static>>>>,
    ) -> Result<Response<Self::EchoStream>, Status> {
        Err(Status::unimplemented(""))
    }
}

type Greeter = helloworld::greeter_server::GreeterServer<Nobody>;
type Notes = notes::notes_server::NotesServer<Nobody>;

/// Returns the names of the set's files and the comments of the last one.
fn described(set: &[u8]) -> (Vec<String>, Vec<String>) {
    let set = prost_types::FileDescriptorSet::decode(set).expect("a set");
    let locations = &set.file.last().expect("a file").source_code_info.as_ref().expect("comments").location;
    let comments = locations.iter().filter_map(|at| at.leading_comments.clone()).collect();
    (set.file.iter().map(|file| file.name().to_owned()).collect(), comments)
}

#[test]
fn services_have_their_descriptors_with_them() {
    let (files, comments) = described(Greeter::FILE_DESCRIPTOR_SET);
    assert_eq!(files, ["helloworld.proto"]);
    assert!(comments.contains(&" Sends one greeting.\n".to_owned()), "{comments:?}");
    assert_eq!(Greeter::FILE_DESCRIPTOR_SET, helloworld::FILE_DESCRIPTOR_SET);
    assert_eq!(described(Notes::FILE_DESCRIPTOR_SET).0, ["notes.proto"]);
    assert_eq!(
        <InterceptedService<Greeter> as Service>::FILE_DESCRIPTOR_SET,
        helloworld::FILE_DESCRIPTOR_SET
    );
}

#[test]
fn a_server_has_each_set_once() {
    /// A hand-written service without descriptors.
    struct Plain;

    impl Service for Plain {
        const NAME: &'static str = "Plain";

        fn register(self, _: &mut thalweg::server::Methods<'_>) {}
    }

    /// Another service of the same file.
    struct Second(Greeter);

    impl Service for Second {
        const NAME: &'static str = "helloworld.Second";
        const FILE_DESCRIPTOR_SET: &'static [u8] = Greeter::FILE_DESCRIPTOR_SET;

        fn register(self, methods: &mut thalweg::server::Methods<'_>) {
            methods.add_service(self.0);
        }
    }

    let server = Server::builder().add_service(Plain);
    let handle = server.handle();
    assert!(handle.descriptor_sets().is_empty());
    let server = server.add_service(Greeter::new(Nobody)).add_service(Notes::new(Nobody));
    let server = server.add_service(Second(Greeter::new(Nobody)));
    let expected = [helloworld::FILE_DESCRIPTOR_SET, notes::FILE_DESCRIPTOR_SET];
    assert_eq!(handle.descriptor_sets(), expected);
    drop(server.into_parts().expect("a configuration"));
    assert_eq!(handle.descriptor_sets(), expected);
}
