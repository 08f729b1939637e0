//! Files of Kubernetes documents, as `kubectl get -o json` writes them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::readiness::node_now;
use super::{RECHECK, Source, SourceError};
use crate::node::{Node, NodeDocument, Readiness};
use crate::service::Service;

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// A cluster's services are a hundredth of this.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What can be read from a document.
pub trait FromDocument: Sized + Send {
    /// The `kind` of its documents.
    const KIND: &'static str;

    /// Reads one document of that kind.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    fn from_document(document: Value) -> Result<Self, serde_json::Error>;

    /// What stands for a document that cannot be read, so that it is neither forgotten nor in the way of others; nothing if there is
    /// no such thing.
    fn unreadable(document: &Value, why: &serde_json::Error) -> Option<Self> {
        let _ = (document, why);
        None
    }

    /// Whether the same document will be read in the same way later. A node that has stopped being ready is read anew from time to
    /// time: for how long that has been so matters.
    fn is_settled(&self) -> bool {
        true
    }
}

impl FromDocument for Service {
    const KIND: &'static str = "Service";

    fn from_document(document: Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(document)
    }

    fn unreadable(document: &Value, why: &serde_json::Error) -> Option<Self> {
        Self::of_unreadable(document, &why.to_string())
    }
}

/// A document that cannot be read: which one, and why.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct DocumentError {
    place: String,
    why: String,
}

/// Reads documents from a text: a list (`kind: List` or `…List`, with `items`), one document, or a JSON array of documents.
/// Documents of another kind are passed over, but a text that has no others is refused: it is another file than was meant, and
/// nothing at all would be taken for what is wanted.
///
/// # Errors
///
/// The text is not JSON, has only documents of other kinds, or a document of the wanted kind has no name. One that cannot be read
/// otherwise is given with why ([`Service::unreadable`], [`Node::unreadable`]).
pub fn read_documents<T: FromDocument>(text: &str) -> Result<Vec<T>, DocumentError> {
    let whole = |why: String| DocumentError {
        place: "the whole text".to_owned(),
        why,
    };
    let value: Value = serde_json::from_str(text).map_err(|error| {
        whole(format!(
            "it is not JSON: {error}; `kubectl get {}s -A -o json` writes it",
            T::KIND.to_lowercase()
        ))
    })?;
    // Items of a typed list have no kind of their own.
    let mut of_items = T::KIND.to_owned();
    let mut stranger = None;
    let documents = match value {
        Value::Array(items) => items,
        Value::Object(mut object) => match object.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => {
                let kind = object
                    .get("kind")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if let Some(kind) = kind.strip_suffix("List").filter(|kind| !kind.is_empty()) {
                    kind.clone_into(&mut of_items);
                    stranger = (kind != T::KIND).then(|| kind.to_owned());
                }
                items
            }
            Some(_) => return Err(whole("`items` is not a list".to_owned())),
            None => vec![Value::Object(object)],
        },
        _ => {
            return Err(whole(
                "it is neither a document nor a list of documents".to_owned(),
            ));
        }
    };
    let mut found = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let kind = document["kind"].as_str().unwrap_or(&of_items);
        if kind != T::KIND {
            stranger.get_or_insert_with(|| kind.to_owned());
            continue;
        }
        let name = document["metadata"]["name"]
            .as_str()
            .unwrap_or("without a name")
            .to_owned();
        let place = format!("item {index} ({} {name})", T::KIND);
        // What cannot be read keeps what it has, and is in nobody's way.
        let read = T::from_document(document.clone())
            .or_else(|error| T::unreadable(&document, &error).ok_or(error));
        found.push(read.map_err(|error| DocumentError {
            place,
            why: error.to_string(),
        })?);
    }
    if let (true, Some(stranger)) = (found.is_empty(), stranger) {
        let kind: String = stranger.chars().take(60).collect();
        return Err(whole(format!(
            "it has documents of kind {kind:?} and none of kind {}; was another file meant?",
            T::KIND
        )));
    }
    Ok(found)
}

/// A file of services or nodes that is read again when it changes. It is looked at every second, so it may be replaced, and it
/// may be on a network.
#[derive(Debug)]
pub struct FileSource<T> {
    path: PathBuf,
    last: Option<String>,
    is_told: bool,
    recheck: Option<Instant>,
    kind: std::marker::PhantomData<fn() -> T>,
}

impl<T: FromDocument> FileSource<T> {
    /// The documents of a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            last: None,
            is_told: false,
            recheck: None,
            kind: std::marker::PhantomData,
        }
    }

    fn error(&self, error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
        SourceError::new(format!("{} cannot be read", self.path.display())).with_source(error)
    }
}

#[async_trait]
impl<T: FromDocument> Source<T> for FileSource<T> {
    async fn next(&mut self) -> Result<Vec<T>, SourceError> {
        loop {
            if self.last.is_some() || self.is_told {
                sleep(INTERVAL).await;
            }
            let path = self.path.clone();
            // Disks block, and those on a network may hang.
            let text = tokio::task::spawn_blocking(move || read(&path)).await;
            match text.map_err(|error| self.error(error))? {
                Err(_) if self.is_told => {}
                Err(error) => {
                    // Once; a file that is away for a while is no news.
                    self.is_told = true;
                    return Err(self.error(error));
                }
                Ok(text) => {
                    self.is_told = false;
                    let is_due = self.recheck.is_some_and(|at| at <= Instant::now());
                    if self.last.as_ref() == Some(&text) && !is_due {
                        continue;
                    }
                    let documents = read_documents::<T>(&text);
                    self.last = Some(text);
                    let settled = documents
                        .as_ref()
                        .map_or(true, |all| all.iter().all(T::is_settled));
                    self.recheck = (!settled).then(|| Instant::now() + RECHECK);
                    return documents.map_err(|error| self.error(error));
                }
            }
        }
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(path)?;
    // Opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(std::io::Error::other(format!(
            "it has more than {MAX_BYTES} bytes"
        )));
    }
    std::fs::read_to_string(path)
}

impl FromDocument for Node {
    const KIND: &'static str = "Node";

    fn from_document(document: Value) -> Result<Self, serde_json::Error> {
        NodeDocument::deserialize(document).map(node_now)
    }

    fn unreadable(document: &Value, why: &serde_json::Error) -> Option<Self> {
        Self::of_unreadable(document, &why.to_string())
    }

    fn is_settled(&self) -> bool {
        /// No grace is longer.
        const LONG_AGO: Duration = Duration::from_secs(24 * 3_600);
        match self.readiness {
            Readiness::Ready => true,
            Readiness::NotReady(since) => since > LONG_AGO,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    fn names(services: &[Service]) -> Vec<&str> {
        services
            .iter()
            .map(|service| service.key.name.as_str())
            .collect()
    }

    #[test]
    fn lists_documents_and_arrays_are_read() {
        let web = r#"{"kind":"Service","metadata":{"name":"web"},"spec":{}}"#;
        let typed = r#"{"metadata":{"name":"web"}}"#;
        let node = r#"{"kind":"Node","metadata":{"name":"n"}}"#;
        for text in [
            web.to_owned(),
            format!("[{web},{node}]"),
            format!(r#"{{"kind":"List","items":[{node},{web}]}}"#),
            format!(r#"{{"kind":"ServiceList","items":[{typed}]}}"#),
        ] {
            assert_eq!(names(&read_documents(&text).unwrap()), ["web"], "{text}");
        }
        // A typed list says its kind once.
        for text in ["[]", r#"{"kind":"List","items":[]}"#] {
            assert!(
                read_documents::<Service>(text).unwrap().is_empty(),
                "{text}"
            );
        }
        for (text, expected) in [
            (
                r#"{"kind":"List","items":[{"kind":"Node","metadata":{"name":"n"}}]}"#,
                "none of kind Service",
            ),
            (
                r#"{"kind":"NodeList","items":[{"metadata":{"name":"n"}}]}"#,
                "none of kind Service",
            ),
            (r#"{"kind":"NodeList","items":[]}"#, "none of kind Service"),
            ("", "not JSON"),
            ("3", "neither a document nor a list"),
            (r#"{"items":3}"#, "`items` is not a list"),
            (
                r#"[{"metadata":{"annotations":3}}]"#,
                "item 0 (Service without a name)",
            ),
        ] {
            let error = read_documents::<Service>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_service_that_cannot_be_read_is_in_nobodys_way() {
        let text = r#"[{"metadata":{"name":"bad","annotations":3}},{"metadata":{"name":"web"}}]"#;
        let services: Vec<Service> = read_documents(text).unwrap();
        assert_eq!(names(&services), ["bad", "web"]);
        assert!(services[0].unreadable.is_some() && services[1].unreadable.is_none());
    }

    #[tokio::test]
    async fn a_file_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("services.json");
        let write = |name: &str| {
            std::fs::write(&path, format!(r#"[{{"metadata":{{"name":"{name}"}}}}]"#)).unwrap()
        };
        let mut source = FileSource::<Service>::new(&path);
        let missing = source.next().await.unwrap_err().to_string();
        assert!(
            missing.contains("services.json cannot be read"),
            "{missing}"
        );
        write("a");
        assert_eq!(names(&source.next().await.unwrap()), ["a"]);
        std::fs::write(&path, "{").unwrap();
        source.next().await.unwrap_err();
        assert!(
            timeout(INTERVAL * 2, source.next()).await.is_err(),
            "it is told once"
        );
        write("b");
        assert_eq!(names(&source.next().await.unwrap()), ["b"]);
    }
}
