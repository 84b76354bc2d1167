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

struct Unimplemented;

impl helloworld::greeter_server::Greeter for Unimplemented {
    async fn say_hello(
        &self,
        _: Request<helloworld::HelloRequest>,
    ) -> Result<Response<helloworld::HelloReply>, Status> {
        Err(Status::unimplemented(""))
    }
}

impl notes::notes_server::Notes for Unimplemented {
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

type Greeter = helloworld::greeter_server::GreeterServer<Unimplemented>;
type Notes = notes::notes_server::NotesServer<Unimplemented>;

/// Returns the names of the set's files and the comments of the last one.
fn descriptor_names(set: &[u8]) -> (Vec<String>, Vec<String>) {
    let set = prost_types::FileDescriptorSet::decode(set).expect("a set");
    let locations = &set.file.last().expect("a file").source_code_info.as_ref().expect("comments").location;
    let comments = locations.iter().filter_map(|at| at.leading_comments.clone()).collect();
    (set.file.iter().map(|file| file.name().to_owned()).collect(), comments)
}

#[test]
fn services_include_their_descriptors() {
    let (files, comments) = descriptor_names(Greeter::FILE_DESCRIPTOR_SET);
    assert_eq!(files, ["helloworld.proto"]);
    assert!(comments.contains(&" Sends one greeting.\n".to_owned()), "{comments:?}");
    assert_eq!(Greeter::FILE_DESCRIPTOR_SET, helloworld::FILE_DESCRIPTOR_SET);
    assert_eq!(descriptor_names(Notes::FILE_DESCRIPTOR_SET).0, ["notes.proto"]);
    assert_eq!(
        <InterceptedService<Greeter> as Service>::FILE_DESCRIPTOR_SET,
        helloworld::FILE_DESCRIPTOR_SET
    );
}

#[test]
fn server_has_each_descriptor_set_once() {
    /// A hand-written service without descriptors.
    struct ServiceWithoutDescriptors;

    impl Service for ServiceWithoutDescriptors {
        const NAME: &'static str = "Plain";

        fn register(self, _: &mut thalweg::server::Methods<'_>) {}
    }

    /// Another service of the same file.
    struct ServiceWithSharedDescriptors(Greeter);

    impl Service for ServiceWithSharedDescriptors {
        const NAME: &'static str = "helloworld.Second";
        const FILE_DESCRIPTOR_SET: &'static [u8] = Greeter::FILE_DESCRIPTOR_SET;

        fn register(self, methods: &mut thalweg::server::Methods<'_>) {
            methods.add_service(self.0);
        }
    }

    let server = Server::builder().add_service(ServiceWithoutDescriptors);
    let handle = server.handle();
    assert!(handle.descriptor_sets().is_empty());
    let server = server.add_service(Greeter::new(Unimplemented)).add_service(Notes::new(Unimplemented));
    let server = server.add_service(ServiceWithSharedDescriptors(Greeter::new(Unimplemented)));
    let expected = [helloworld::FILE_DESCRIPTOR_SET, notes::FILE_DESCRIPTOR_SET];
    assert_eq!(handle.descriptor_sets(), expected);
    drop(server.into_parts().expect("a configuration"));
    assert_eq!(handle.descriptor_sets(), expected);
}
