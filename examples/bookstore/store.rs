//! The shelves and their books, in memory: [`Store`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg::Status;
use tokio::sync::broadcast;

use crate::names;
use crate::proto::shelf_event::Event;
use crate::proto::{Book, Shelf};

#[derive(Default)]
pub(crate) struct Store(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    shelves: BTreeMap<u32, ShelfState>,
    last_shelf: u32,
}

struct ShelfState {
    theme: String,
    books: BTreeMap<u32, Book>,
    last_book: u32,
    events: broadcast::Sender<Event>,
}

/// Maximum number of events that a watcher may lag behind.
const EVENTS_MAX: usize = 64;

impl Store {
    /// Creates a store with two shelves of sample books.
    pub(crate) fn with_sample_books() -> Self {
        /// Author, title and pages.
        type SampleBook = (&'static str, &'static str, i32);
        const BOOKS: [(&str, &[SampleBook]); 2] = [
            ("rivers", &[("Mark Twain", "Life on the Mississippi", 624), ("Claudio Magris", "Danube", 416)]),
            ("machines", &[("Ada Lovelace", "Notes on the Analytical Engine", 66)]),
        ];
        let store = Self::default();
        for (theme, books) in BOOKS {
            let shelf = store.add_shelf(theme.to_owned());
            for (author, title, pages) in books {
                let book = Book {
                    author: (*author).to_owned(),
                    title: (*title).to_owned(),
                    pages: *pages,
                    ..Book::default()
                };
                store.add_book(&shelf.name, book).expect("the shelf is there");
            }
        }
        store
    }

    pub(crate) fn shelves(&self) -> Vec<Shelf> {
        self.lock().shelves.iter().map(|(number, shelf_state)| shelf_state.shelf(*number)).collect()
    }

    pub(crate) fn add_shelf(&self, theme: String) -> Shelf {
        let mut inner = self.lock();
        inner.last_shelf += 1;
        let number = inner.last_shelf;
        let events = broadcast::Sender::new(EVENTS_MAX);
        let shelf_state = ShelfState { theme, books: BTreeMap::new(), last_book: 0, events };
        let shelf = shelf_state.shelf(number);
        inner.shelves.insert(number, shelf_state);
        shelf
    }

    pub(crate) fn books(&self, shelf: &str) -> Result<Vec<Book>, Status> {
        Ok(self.lock().shelf(shelf)?.1.books.values().cloned().collect())
    }

    pub(crate) fn all_books(&self) -> Vec<Book> {
        self.lock().shelves.values().flat_map(|shelf_state| shelf_state.books.values().cloned()).collect()
    }

    pub(crate) fn book(&self, name: &str) -> Result<Book, Status> {
        Ok(self.lock().book(name)?.1.clone())
    }

    pub(crate) fn add_book(&self, shelf: &str, book: Book) -> Result<Book, Status> {
        let mut inner = self.lock();
        let (number, shelf_state) = inner.shelf(shelf)?;
        shelf_state.last_book += 1;
        let book = Book { name: format!("shelves/{number}/books/{}", shelf_state.last_book), ..book };
        shelf_state.books.insert(shelf_state.last_book, book.clone());
        shelf_state.notify(Event::Put(book.clone()));
        Ok(book)
    }

    /// Changes a book atomically.
    pub(crate) fn update(
        &self,
        name: &str,
        change: impl FnOnce(&mut Book) -> Result<(), Status>,
    ) -> Result<Book, Status> {
        let mut inner = self.lock();
        let (shelf_state, book) = inner.book(name)?;
        let mut changed = book.clone();
        change(&mut changed)?;
        *book = changed.clone();
        // Fails if nobody watches the shelf.
        let _ = shelf_state.send(Event::Put(changed.clone()));
        Ok(changed)
    }

    pub(crate) fn remove_book(&self, name: &str) -> Result<(), Status> {
        let mut inner = self.lock();
        inner.book(name)?;
        let (shelf, book) = names::book(name)?;
        if let Some(shelf_state) = inner.shelves.get_mut(&shelf) {
            shelf_state.books.remove(&book);
            shelf_state.notify(Event::Taken(name.to_owned()));
        }
        Ok(())
    }

    pub(crate) fn events(&self, shelf: &str) -> Result<broadcast::Receiver<Event>, Status> {
        Ok(self.lock().shelf(shelf)?.1.events.subscribe())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn shelf(&mut self, name: &str) -> Result<(u32, &mut ShelfState), Status> {
        let number = names::shelf(name)?;
        let shelf_state = self.shelves.get_mut(&number);
        Ok((number, shelf_state.ok_or_else(|| Status::not_found(format!("there is no {name}")))?))
    }

    /// Returns a book and the event channel of its shelf.
    fn book(&mut self, name: &str) -> Result<(&broadcast::Sender<Event>, &mut Book), Status> {
        let (shelf, book) = names::book(name)?;
        let found = self.shelves.get_mut(&shelf).and_then(|shelf_state| {
            let book = shelf_state.books.get_mut(&book)?;
            Some((&shelf_state.events, book))
        });
        found.ok_or_else(|| Status::not_found(format!("there is no {name}")))
    }
}

impl ShelfState {
    fn shelf(&self, number: u32) -> Shelf {
        Shelf { name: format!("shelves/{number}"), theme: self.theme.clone() }
    }

    fn notify(&self, event: Event) {
        // Fails if nobody watches the shelf.
        let _ = self.events.send(event);
    }
}
