//! Signals that a file may have changed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;

use super::layers::Layers;

/// Watches the directories of files.
///
/// A watch on the file itself would not do: if another file is renamed over it, as editors and Kubernetes
/// do, the watch stays with the old file, which is no longer visible. ConfigMaps are links to a directory
/// that is replaced, which is an event of the directory of the link.
pub(super) struct DirectoryWatch {
    /// Keeps the watch alive.
    _watcher: Option<RecommendedWatcher>,
    signal: Arc<Notify>,
}

impl DirectoryWatch {
    /// Watches the directories of the files. If the system cannot watch, there are no notifications, but a
    /// warning.
    pub(super) fn new(layers: &Layers) -> Self {
        let signal = Arc::new(Notify::new());
        let watcher = watch(layers, Arc::clone(&signal));
        if let Err(error) = &watcher {
            tracing::warn!(
                target: "discovery::file",
                error = %error,
                "the configuration's directory cannot be watched; changes are noticed by reading the files regularly",
            );
        }
        Self {
            _watcher: watcher.ok(),
            signal,
        }
    }

    /// Creates a watch that reports nothing.
    pub(super) fn off() -> Self {
        Self {
            _watcher: None,
            signal: Arc::new(Notify::new()),
        }
    }

    /// Waits until something happened. Can be dropped at any time without losing a signal.
    pub(super) async fn signalled(&self) {
        self.signal.notified().await;
    }
}

fn watch(layers: &Layers, signal: Arc<Notify>) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // An error may mean that events were lost, so it is a reason to look as well.
        if event.map_or(true, |event| may_change(&event.kind)) {
            signal.notify_one();
        }
    })?;
    let files = layers.files();
    let directories = files.iter().map(|(path, _)| directory_of(path));
    let directories = directories.chain(layers.key_directories().iter().map(PathBuf::as_path));
    for directory in HashSet::<&Path>::from_iter(directories) {
        watcher.watch(directory, RecursiveMode::NonRecursive)?;
    }
    Ok(watcher)
}

/// Returns true if an event can mean a change of content. Reading a file is an event too, and must not lead
/// to reading it again.
fn may_change(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        EventKind::Any
        | EventKind::Create(_)
        | EventKind::Modify(_)
        | EventKind::Remove(_)
        | EventKind::Other => true,
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
