//! Implements the service, once for all protocols.

use std::pin::Pin;
use std::sync::Arc;

use thalweg::Streaming;
use thalweg::{Request, Response, Status};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};

use crate::advice;
use crate::proto::bookstore_server::Bookstore;
use crate::proto::{
    AdviseRequest, AdviseResponse, Book, CreateBookRequest, CreateShelfRequest, DeleteBookRequest,
    GetBookRequest, ImportBooksResponse, ListBooksRequest, ListBooksResponse, ListShelvesRequest,
    ListShelvesResponse, Shelf, ShelfEvent, UpdateBookRequest, WatchShelfRequest,
};
use crate::store::Store;

pub(crate) struct Service {
    store: Arc<Store>,
}

impl Service {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

impl Bookstore for Service {
    async fn list_shelves(
        &self,
        _: Request<ListShelvesRequest>,
    ) -> Result<Response<ListShelvesResponse>, Status> {
        Ok(Response::new(ListShelvesResponse { shelves: self.store.shelves() }))
    }

    async fn create_shelf(&self, request: Request<CreateShelfRequest>) -> Result<Response<Shelf>, Status> {
        let Some(shelf) = request.into_inner().shelf.filter(|shelf| !shelf.theme.is_empty()) else {
            return Err(Status::invalid_argument("a shelf has a theme"));
        };
        Ok(Response::new(self.store.add_shelf(shelf.theme)))
    }

    async fn list_books(
        &self,
        request: Request<ListBooksRequest>,
    ) -> Result<Response<ListBooksResponse>, Status> {
        let ListBooksRequest { parent, page_size, page_token } = request.into_inner();
        let mut books = self.store.books(&parent)?;
        if !page_token.is_empty() {
            let Some(start) = books.iter().position(|book| book.name == page_token) else {
                return Err(Status::invalid_argument(format!("no page begins at {page_token:?}")));
            };
            books.drain(..start);
        }
        let mut next_page_token = String::new();
        if let Some(size) = usize::try_from(page_size).ok().filter(|size| *size > 0)
            && let Some(next) = books.get(size)
        {
            next_page_token.clone_from(&next.name);
            books.truncate(size);
        }
        Ok(Response::new(ListBooksResponse { books, next_page_token }))
    }

    async fn get_book(&self, request: Request<GetBookRequest>) -> Result<Response<Book>, Status> {
        Ok(Response::new(self.store.book(&request.get_ref().name)?))
    }

    async fn create_book(&self, request: Request<CreateBookRequest>) -> Result<Response<Book>, Status> {
        Ok(Response::new(self.add(request.into_inner())?))
    }

    async fn update_book(&self, request: Request<UpdateBookRequest>) -> Result<Response<Book>, Status> {
        let UpdateBookRequest { book, update_mask } = request.into_inner();
        let book = book.ok_or_else(|| Status::invalid_argument("what should the book be?"))?;
        let paths = update_mask.map_or_else(|| set_fields(&book), |mask| mask.paths);
        let changed = self.store.update(&book.name, |stored| {
            for path in &paths {
                match path.as_str() {
                    "author" => stored.author.clone_from(&book.author),
                    "title" => stored.title.clone_from(&book.title),
                    "pages" => stored.pages = book.pages,
                    // Identifies the book, so it cannot change.
                    "name" => {}
                    other => return Err(Status::invalid_argument(format!("a book has no field {other:?}"))),
                }
            }
            Ok(())
        })?;
        Ok(Response::new(changed))
    }

    async fn delete_book(&self, request: Request<DeleteBookRequest>) -> Result<Response<()>, Status> {
        self.store.remove_book(&request.get_ref().name)?;
        Ok(Response::new(()))
    }

    type WatchShelfStream = ResponseStream<ShelfEvent>;

    async fn watch_shelf(
        &self,
        request: Request<WatchShelfRequest>,
    ) -> Result<Response<ResponseStream<ShelfEvent>>, Status> {
        let events = BroadcastStream::new(self.store.events(&request.get_ref().name)?);
        let events = events.map(|event| match event {
            Ok(event) => Ok(ShelfEvent { event: Some(event) }),
            Err(_) => Err(Status::data_loss("too much happened at once; begin again")),
        });
        Ok(Response::new(Box::pin(events)))
    }

    async fn import_books(
        &self,
        request: Request<Streaming<CreateBookRequest>>,
    ) -> Result<Response<ImportBooksResponse>, Status> {
        let mut requests = request.into_inner();
        let mut count = 0;
        while let Some(next) = requests.message().await? {
            self.add(next)?;
            count += 1;
        }
        Ok(Response::new(ImportBooksResponse { count }))
    }

    type AdviseStream = ResponseStream<AdviseResponse>;

    async fn advise(
        &self,
        request: Request<Streaming<AdviseRequest>>,
    ) -> Result<Response<ResponseStream<AdviseResponse>>, Status> {
        let store = Arc::clone(&self.store);
        let advice = request.into_inner().map(move |request| {
            let question = request?.question;
            let books = advice::find_books(&question, store.all_books());
            Ok(AdviseResponse { question, books })
        });
        Ok(Response::new(Box::pin(advice)))
    }
}

impl Service {
    fn add(&self, request: CreateBookRequest) -> Result<Book, Status> {
        let Some(book) = request.book.filter(|book| !book.title.is_empty()) else {
            return Err(Status::invalid_argument("a book has a title"));
        };
        self.store.add_book(&request.parent, book)
    }
}

/// Returns the names of the fields that are set.
fn set_fields(book: &Book) -> Vec<String> {
    let fields =
        [("author", !book.author.is_empty()), ("title", !book.title.is_empty()), ("pages", book.pages != 0)];
    fields.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned()).collect()
}
