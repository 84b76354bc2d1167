//! Finds the books that match a question.

use crate::proto::Book;

/// Returns the books whose title or author contains a word of the question.
pub(crate) fn find_books(question: &str, books: Vec<Book>) -> Vec<Book> {
    let words: Vec<String> = question.split_whitespace().map(str::to_lowercase).collect();
    let matches = |book: &Book| {
        let text = format!("{} {}", book.title, book.author).to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    books.into_iter().filter(matches).collect()
}
