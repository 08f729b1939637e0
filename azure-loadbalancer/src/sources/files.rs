//! Files of Kubernetes documents, as `kubectl get -o json` and `-o yaml` write them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::readiness::node_now;
use super::{RECHECK, Source, SourceError};
use crate::node::{Node, NodeDocument, Readiness};
use crate::service::Service;
use crate::text::{Documents, MAX_BYTES, Misread, read_value};

/// The interval at which files are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of consecutive reads with a different text each after which that is reported.
const MOST_LOOKS: u32 = 10;

/// A type that can be read from a document.
pub trait FromDocument: Sized + Send {
    /// The `kind` of its documents.
    const KIND: &'static str;

    /// Reads one document of that kind.
    ///
    /// # Errors
    ///
    /// The first invalid part.
    fn from_document(document: &Value) -> Result<Self, Misread>;

    /// Returns a placeholder for a document that cannot be read, so that it is neither forgotten nor blocks
    /// the others. `None` if the type has no placeholder.
    fn unreadable(document: &Value, why: &str) -> Option<Self> {
        let _ = (document, why);
        None
    }

    /// Returns true if the same document always gives the same value. The document of a node that is not
    /// ready is read again periodically, since its value includes the time since.
    fn is_settled(&self) -> bool {
        true
    }
}

impl FromDocument for Service {
    const KIND: &'static str = "Service";

    fn from_document(document: &Value) -> Result<Self, Misread> {
        read_value(document)
    }

    fn unreadable(document: &Value, why: &str) -> Option<Self> {
        Self::of_unreadable(document, why)
    }
}

/// A document that cannot be read, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct DocumentError {
    place: String,
    why: String,
}

/// Reads documents from a text of JSON or, with feature `yaml`, of YAML: a list (`kind: List` or `…List`,
/// with `items`), an array of documents, or a series of documents, each of which may be a list. Documents of
/// another kind are ignored. A text with no others is rejected, since it is the wrong file, and an empty
/// result would remove everything. A list without `kind`, which `kubectl` writes last, is rejected too: the
/// text is truncated.
///
/// # Errors
///
/// The text is invalid or empty, has only documents of other kinds, or a document of this kind has no name. A
/// document that is otherwise invalid is returned with the reason ([`Service::unreadable`],
/// [`Node::unreadable`]).
pub fn read_documents<T: FromDocument>(text: &str) -> Result<Vec<T>, DocumentError> {
    let whole = |why: String| DocumentError {
        place: "the whole text".to_owned(),
        why,
    };
    let documents = Documents::read(text).map_err(|error| {
        let kind = T::KIND.to_lowercase();
        whole(format!(
            "{error}; `kubectl get {kind}s -A -o json` writes this format"
        ))
    })?;
    let mut found = Vec::new();
    let mut stranger = None;
    for (index, document) in documents.all().iter().enumerate() {
        let items = Items::of::<T>(document).map_err(|why| match documents.all().len() {
            1 => whole(why),
            _ => whole(format!("document {}: {why}", index + 1)),
        })?;
        if items.kind != T::KIND {
            stranger.get_or_insert_with(|| items.kind.to_owned());
        }
        for (position, item) in items.all.iter().enumerate() {
            let kind = item["kind"].as_str().unwrap_or(items.kind);
            if kind != T::KIND {
                stranger.get_or_insert_with(|| kind.to_owned());
                continue;
            }
            let at = ItemPosition {
                documents: &documents,
                index,
                path: items.path_of(position),
            };
            found.push(at.read(item)?);
        }
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

/// The items of a document.
struct Items<'d> {
    all: &'d [Value],
    /// The kind of items without one: items of a typed list have no kind of their own.
    kind: &'d str,
    /// The key of the list.
    below: Option<&'static str>,
    is_list: bool,
}

impl<'d> Items<'d> {
    fn of<T: FromDocument>(document: &'d Value) -> Result<Self, String> {
        let items = |all, kind, below, is_list| Items {
            all,
            kind,
            below,
            is_list,
        };
        match document {
            Value::Array(all) => Ok(items(all, T::KIND, None, true)),
            Value::Object(object) => match object.get("items") {
                Some(Value::Array(all)) => {
                    let kind = object.get("kind").and_then(Value::as_str);
                    // Truncated YAML is often valid, with fewer items.
                    let kind = kind.ok_or(
                        "it has `items` and no `kind`; is it cut off? `kubectl` writes `kind: List` behind the items",
                    )?;
                    let kind = kind.strip_suffix("List");
                    let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or(T::KIND);
                    Ok(items(all, kind, Some("items"), true))
                }
                Some(_) => Err("`items` is not a list".to_owned()),
                None => Ok(items(std::slice::from_ref(document), T::KIND, None, false)),
            },
            _ => Err("it is neither a document nor a list of documents".to_owned()),
        }
    }

    fn path_of(&self, position: usize) -> Vec<String> {
        let position = self.is_list.then(|| position.to_string());
        self.below
            .map(str::to_owned)
            .into_iter()
            .chain(position)
            .collect()
    }
}

/// The position of an item.
struct ItemPosition<'d> {
    documents: &'d Documents<'d>,
    index: usize,
    path: Vec<String>,
}

impl ItemPosition<'_> {
    fn read<T: FromDocument>(self, item: &Value) -> Result<T, DocumentError> {
        let error = match T::from_document(item) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let path: Vec<_> = self.path.iter().chain(error.path()).cloned().collect();
        let mut why = error.to_string();
        if let Some(line) = self.documents.line_of(self.index, &path) {
            why = format!("{why} (line {line})");
        }
        // A service or node that cannot be read keeps its resources, and does not block others.
        T::unreadable(item, &why).ok_or_else(|| {
            let name = item["metadata"]["name"]
                .as_str()
                .unwrap_or("without a name");
            let position = self.path.last().map_or_else(
                || format!("document {}", self.index + 1),
                |position| format!("item {position}"),
            );
            let place = format!("{position} ({} {name})", T::KIND);
            DocumentError { place, why }
        })
    }
}

/// A file of services or nodes that is read again when it changes. It is read every second, so it may be
/// replaced, and may be on a network drive. A text is accepted after two equal reads in a row, since a partly
/// written one may be valid, with fewer items. A text that keeps changing is reported as an error.
#[derive(Debug)]
pub struct FileSource<T> {
    path: PathBuf,
    /// The last accepted text.
    last: Option<String>,
    /// A text that was read only once.
    unconfirmed: Option<String>,
    /// The number of consecutive reads with a different text each.
    unsettled: u32,
    /// The time of the next read.
    look_at: Option<Instant>,
    is_told: bool,
    recheck: Option<Instant>,
    kind: std::marker::PhantomData<fn() -> T>,
}

impl<T: FromDocument> FileSource<T> {
    /// Creates a source of the documents in a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            last: None,
            unconfirmed: None,
            unsettled: 0,
            look_at: None,
            is_told: false,
            recheck: None,
            kind: std::marker::PhantomData,
        }
    }

    fn error(&self, error: impl std::error::Error + Send + Sync + 'static) -> SourceError {
        SourceError::new(format!("{} cannot be read", self.path.display())).with_source(error)
    }

    /// Returns true if a text is new: it differs from the last one and was read twice, or is due to be read
    /// again.
    fn is_news(&mut self, text: &str) -> Result<bool, SourceError> {
        if self.last.as_deref() == Some(text) {
            self.unconfirmed = None;
            self.unsettled = 0;
            return Ok(self.recheck.is_some_and(|at| at <= Instant::now()));
        }
        if self.unconfirmed.as_deref() == Some(text) {
            self.unconfirmed = None;
            self.unsettled = 0;
            return Ok(true);
        }
        self.unconfirmed = Some(text.to_owned());
        self.unsettled = self.unsettled.saturating_add(1);
        // Reported once; the last state may be old by then.
        match self.unsettled {
            MOST_LOOKS => Err(SourceError::new(format!(
                "{} is written all the time; it is used once it stays the same for {} s",
                self.path.display(),
                INTERVAL.as_secs()
            ))),
            _ => Ok(false),
        }
    }
}

#[async_trait]
impl<T: FromDocument> Source<T> for FileSource<T> {
    async fn next(&mut self) -> Result<Vec<T>, SourceError> {
        loop {
            if let Some(at) = self.look_at {
                sleep_until(at).await;
            }
            let path = self.path.clone();
            // File access can block, or hang on a network drive.
            let text = tokio::task::spawn_blocking(move || read(&path)).await;
            self.look_at = Some(Instant::now() + INTERVAL);
            match text.map_err(|error| self.error(error))? {
                Err(_) if self.is_told => self.unconfirmed = None,
                Err(error) => {
                    // Reported once; a file that is missing for a while is no change.
                    self.is_told = true;
                    self.unconfirmed = None;
                    return Err(self.error(error));
                }
                Ok(text) => {
                    self.is_told = false;
                    if !self.is_news(&text)? {
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

    fn from_document(document: &Value) -> Result<Self, Misread> {
        read_value::<NodeDocument>(document).map(node_now)
    }

    fn unreadable(document: &Value, why: &str) -> Option<Self> {
        Self::of_unreadable(document, why)
    }

    fn is_settled(&self) -> bool {
        /// Longer than any grace time.
        const LONG_AGO: Duration = Duration::from_secs(24 * 3_600);
        match self.readiness {
            Readiness::Ready => true,
            Readiness::NotReady(since) => since > LONG_AGO,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

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
        // A typed list has its kind once.
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
            ("", "it has no document"),
            ("{", "not JSON"),
            ("3", "neither a document nor a list"),
            (r#"{"items":3}"#, "`items` is not a list"),
            (r#"{"items":[]}"#, "it has `items` and no `kind`"),
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

    #[test]
    fn what_is_wrong_with_a_document_has_its_path() {
        let text = r#"{"kind":"List","items":[{"kind":"Service","metadata":{"name":"web"},
            "spec":{"ports":[{"port":80},{"port":70000}]}}]}"#;
        let services: Vec<Service> = read_documents(text).unwrap();
        let why = services[0].unreadable.as_deref().unwrap_or_default();
        let expected =
            "spec.ports[1].port: invalid value: integer `70000`, expected a number from 0 to 65535";
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(why.ends_with("(line 2)"), cfg!(feature = "yaml"), "{why}");
    }

    #[cfg(feature = "yaml")]
    #[test]
    fn documents_of_yaml_are_read_as_those_of_json() {
        let text = "\u{feff}# by hand\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n\
            spec:\n  type: LoadBalancer\n  ports:\n  - port: 80\n    nodePort: 30080\n---\n---\n\
            kind: Node\nmetadata: {name: n}\n---\nkind: ServiceList\nitems:\n- metadata:\n    name: b\n    annotations:\n      x: true\n";
        let services: Vec<Service> = read_documents(text).unwrap();
        assert_eq!(names(&services), ["web", "b"]);
        assert_eq!(services[0].ports[0].node_port, Some(30_080));
        let why = services[1].unreadable.as_deref().unwrap_or_default();
        let expected =
            "metadata.annotations.x: invalid type: boolean `true`, expected a text (line 21)";
        assert_eq!(why, expected);
        let nodes: Vec<Node> = read_documents(text).unwrap();
        assert_eq!(nodes.len(), 1);
        for (text, expected) in [
            (
                "kind: Service\nmetadata: {}\n",
                "document 1 (Service without a name): metadata: missing field `name` (line 2)",
            ),
            (
                "kind: Pod\n---\nkind: Node\n",
                "documents of kind \"Pod\" and none of kind Service",
            ),
            (
                "- kind: Service\n---\njust text\n",
                "item 0 (Service without a name)",
            ),
            (
                "kind: List\nitems: []\n---\njust text\n",
                "document 2: it is neither a document nor a list",
            ),
            ("a: [\n", "it is not YAML"),
            (
                "apiVersion: v1\nitems:\n- kind: Service\n  metadata:\n    name: web\n",
                "it has `items` and no `kind`; is it cut off?",
            ),
        ] {
            let error = read_documents::<Service>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
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

    /// Returns a series of documents: a cut between two of them is valid.
    fn text_of(names: &[&str]) -> String {
        let documents = names
            .iter()
            .map(|name| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}\n"));
        documents.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_being_written_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("services.json");
        let write = |names: &[&str]| std::fs::write(&path, text_of(names)).unwrap();
        let mut source = FileSource::<Service>::new(&path);
        // Between the first read, which is immediate, and the second; and later between two of them.
        for (whole, looks) in [(&["a", "b"][..], 1), (&["a", "b", "c"], 3)] {
            write(&["a"]);
            let writer = async {
                sleep(INTERVAL * looks / 2).await;
                write(whole);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                state = source.next() => assert_eq!(names(&state.unwrap()), whole),
                () = writer => {}
            }
        }
        // A text that returns before the new one was accepted is no change.
        write(&["a"]);
        let back = async {
            sleep(INTERVAL * 3 / 2).await;
            write(&["a", "b", "c"]);
            sleep(INTERVAL * 10).await;
        };
        tokio::select! {
            state = source.next() => panic!("{state:?}"),
            () = back => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_dropped_delays_no_look() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("services.json");
        std::fs::write(&path, text_of(&["a"])).unwrap();
        let mut source = FileSource::<Service>::new(&path);
        for name in ["a", "b"] {
            std::fs::write(&path, text_of(&[name])).unwrap();
            let mut calls = 0;
            let state = loop {
                calls += 1;
                assert!(calls < 20, "it is never looked");
                if let Ok(state) = timeout(INTERVAL / 4, source.next()).await {
                    break state.unwrap();
                }
            };
            assert_eq!(names(&state), [name]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_written_all_the_time_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("services.json");
        let mut source = FileSource::<Service>::new(&path);
        let writer = async {
            for count in 0.. {
                std::fs::write(&path, text_of(&[&format!("web-{count}")])).unwrap();
                sleep(INTERVAL / 2).await;
            }
        };
        let told = async {
            sleep(INTERVAL / 4).await;
            let error = source.next().await.unwrap_err().to_string();
            assert!(error.contains("is written all the time"), "{error}");
            let again = timeout(INTERVAL * 60, source.next()).await;
            assert!(again.is_err(), "{again:?}");
        };
        tokio::select! {
            () = told => {}
            () = writer => {}
        }
        assert_eq!(source.next().await.unwrap().len(), 1);
    }
}
