//! The shop's own pages, served by axum on the service's port.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Html;
use axum::routing::get;

use crate::store::Store;

pub(crate) fn router(store: Arc<Store>) -> Router {
    Router::new().route("/", get(shelves)).route("/shelves/{shelf}", get(shelf)).with_state(store)
}

async fn shelves(State(store): State<Arc<Store>>) -> Html<String> {
    let mut list = String::new();
    for shelf in store.shelves() {
        let _ = write!(list, "<li><a href=\"/{}\">{}</a></li>", shelf.name, escape_html(&shelf.theme));
    }
    page("The bookstore", &format!("<ul>{list}</ul><p>For programs: <a href=\"/docs\">the service</a>.</p>"))
}

async fn shelf(
    State(store): State<Arc<Store>>,
    Path(shelf): Path<u32>,
) -> Result<Html<String>, (StatusCode, String)> {
    let books = store.books(&format!("shelves/{shelf}"));
    let books = books.map_err(|status| (StatusCode::NOT_FOUND, status.message().to_owned()))?;
    let mut rows = String::new();
    for book in books {
        let (author, title) = (escape_html(&book.author), escape_html(&book.title));
        let _ = write!(rows, "<tr><td>{title}</td><td>{author}</td><td>{}</td></tr>", book.pages);
    }
    let head = "<tr><th>Title</th><th>Author</th><th>Pages</th></tr>";
    Ok(page(
        &format!("Shelf {shelf}"),
        &format!("<table>{head}{rows}</table><p><a href=\"/\">All shelves</a></p>"),
    ))
}

fn page(title: &str, body: &str) -> Html<String> {
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title><h1>{title}</h1>{body}</html>"
    ))
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
