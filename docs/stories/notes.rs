//! A server of notes: files in Markdown, rendered when they are asked for, the latest of them kept.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Html;
use axum::routing::get;
use lru::LruCache;
use parking_lot::Mutex;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

struct Notes {
    folder: PathBuf,
    rendered: Mutex<LruCache<String, Arc<str>>>,
}

impl Notes {
    fn render(&self, name: &str) -> Arc<str> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let parser = pulldown_cmark::Parser::new_ext(&text, pulldown_cmark::Options::all());
        let mut page = String::with_capacity(2 * text.len());
        pulldown_cmark::html::push_html(&mut page, parser);
        page.into()
    }

    fn page(&self, name: &str) -> Arc<str> {
        let mut rendered = self.rendered.lock();
        rendered.get_or_insert(name.to_owned(), || self.render(name)).clone()
    }
}

async fn note(State(notes): State<Arc<Notes>>, Path(name): Path<String>) -> Html<String> {
    Html(notes.page(&name).to_string())
}

#[tokio::main(worker_threads = 4)]
async fn main() {
    let words: Vec<String> = env::args().collect();
    let room = NonZeroUsize::new(words[3].parse().expect("a number")).expect("at least one");
    let notes = Notes { folder: words[2].clone().into(), rendered: Mutex::new(LruCache::new(room)) };
    let listener = tokio::net::TcpListener::bind(&words[1]).await.expect("an address");
    let routes = Router::new().route("/:name", get(note)).with_state(Arc::new(notes));
    axum::serve(listener, routes).await.expect("it serves");
}
