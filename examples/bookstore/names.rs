//! Names of shelves and books: `shelves/2`, `shelves/2/books/5`.

use thalweg::Status;

/// Parses the name of a shelf.
pub(crate) fn shelf(name: &str) -> Result<u32, Status> {
    let number = name.strip_prefix("shelves/").and_then(|number| number.parse().ok());
    number.ok_or_else(|| Status::invalid_argument(format!("{name:?} is no shelf: those are like shelves/2")))
}

/// Parses the name of a book into the numbers of its shelf and the book.
pub(crate) fn book(name: &str) -> Result<(u32, u32), Status> {
    let parts = name.strip_prefix("shelves/").and_then(|rest| rest.split_once("/books/"));
    let numbers = parts.and_then(|(shelf, book)| Some((shelf.parse().ok()?, book.parse().ok()?)));
    let message = || format!("{name:?} is no book: those are like shelves/2/books/5");
    numbers.ok_or_else(|| Status::invalid_argument(message()))
}
