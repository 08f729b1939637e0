//! Configuration from files, followed while they change.

mod driver;
mod encoding;
mod layers;
#[cfg(test)]
mod layers_tests;
mod load;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proxy_model::config::PolicyConfigs;
use proxy_model::json::Layered;
use proxy_model::{CompileOptions, Problems};
use tokio::sync::{Notify, watch as channel};
use tokio::task::AbortHandle;

use self::driver::Follower;
pub use self::layers::{Layers, key_of};
pub use self::load::read_document;
use self::watch::DirectoryWatch;
use crate::provider::{ConfigProvider, ProviderState, Strictness};

/// Provides the section `ReverseProxy` of JSON files, and follows their changes.
///
/// Several files lie on top of each other in the order given, and are merged as .NET merges
/// `appsettings.Production.json` with `appsettings.json` ([`Node::overlaid`](proxy_model::json::Node::overlaid)).
/// [`Layers`] adds the file of an environment, directories of single values, and variables.
///
/// A change is noticed by watching the files' directories, so atomic renames and the links of Kubernetes'
/// ConfigMaps work, and by reading the files every few seconds where watching fails. It is applied when
/// nothing has changed for a moment. Files that cannot be read or parsed change nothing: the previous
/// configuration continues to serve, and the state contains the reason. The same applies to a file that is
/// deleted, or replaced by something other than a regular file: a pipe, a device, a directory. A read that
/// does not end within 10 s is abandoned, and retried when it has ended.
///
/// ```no_run
/// use discovery_core::{FileProvider, Merge};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let file = FileProvider::open(["appsettings.json", "appsettings.Production.json"]).await?;
/// let merged = Merge::new().provider(file).start();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct FileProvider {
    name: Arc<str>,
    required: bool,
    strictness: Strictness,
    state: channel::Receiver<Arc<ProviderState>>,
    task: AbortHandle,
}

/// The reason why files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// One of them cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Files that can be read, but have errors.
    #[error("{} cannot be used as configuration: {problems}", list(paths))]
    Invalid {
        /// The file with the problem, or all files if only their combination has it.
        paths: Vec<PathBuf>,
        /// All problems, with pointers that begin at the document.
        problems: Problems,
    },
    /// An empty list of files.
    #[error("no configuration file is given")]
    NoFile,
    /// The tokio runtime is shutting down.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

impl FileProvider {
    /// Reads files and follows them with default settings. See [`FileOptions::open`].
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing, cannot be read, or cannot be parsed.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; then the files are not followed.
    pub async fn open<P: Into<PathBuf>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, FileError> {
        FileOptions::default().open(paths).await
    }

    /// The current state.
    pub fn state(&self) -> Arc<ProviderState> {
        Arc::clone(&self.state.borrow())
    }
}

impl ConfigProvider for FileProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn subscribe(&self) -> channel::Receiver<Arc<ProviderState>> {
        self.state.clone()
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn strictness(&self) -> Strictness {
        self.strictness
    }
}

impl Drop for FileProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The options of a [`FileProvider`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileOptions {
    /// Name of the provider. Default: `file`.
    pub name: Arc<str>,
    /// True to watch the directories for changes. Default: true.
    pub watch: bool,
    /// The interval at which the files are read even if no change was noticed. At least 10 ms. Default: 5
    /// s.
    pub poll: Duration,
    /// The time without a further change after which a change is applied. Default: 100 ms.
    pub settle: Duration,
    /// The longest time after which a change is applied, even if further ones follow. Default: 1 s.
    pub settle_max: Duration,
    /// True if files without a section `ReverseProxy` are an error. If false, they are an empty
    /// configuration. Default: true.
    pub section_required: bool,
    /// True if the proxy is not ready before the files are in use. Default: true.
    pub required: bool,
    /// The handling of bad parts of the configuration. Default: all or nothing.
    pub strictness: Strictness,
    /// The names that the program has registered. With them, all problems of files that cannot be read are
    /// reported.
    pub compile: CompileOptions,
    /// The reader of the sections beside `ReverseProxy`: policies that routes choose by name, and settings of the
    /// program. It gets the whole document, and adds problems with pointers that begin there. An error rejects the
    /// files. Default: nothing is read.
    pub policies: Option<fn(&Layered, &mut Problems) -> PolicyConfigs>,
    /// Reads the files at once when it is notified, such as by a signal. Default: nothing does.
    pub reload: Option<Arc<Notify>>,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self {
            name: "file".into(),
            watch: true,
            poll: Duration::from_secs(5),
            settle: Duration::from_millis(100),
            settle_max: Duration::from_secs(1),
            section_required: true,
            required: true,
            strictness: Strictness::AllOrNothing,
            compile: CompileOptions::default(),
            policies: None,
            reload: None,
        }
    }
}

impl FileOptions {
    /// Sets [`name`](Self::name).
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets [`watch`](Self::watch).
    #[must_use]
    pub fn with_watch(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }

    /// Sets [`poll`](Self::poll).
    #[must_use]
    pub fn with_poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// Sets [`settle`](Self::settle).
    #[must_use]
    pub fn with_settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    /// Sets [`settle_max`](Self::settle_max).
    #[must_use]
    pub fn with_settle_max(mut self, settle: Duration) -> Self {
        self.settle_max = settle;
        self
    }

    /// Sets [`section_required`](Self::section_required).
    #[must_use]
    pub fn with_section_required(mut self, required: bool) -> Self {
        self.section_required = required;
        self
    }

    /// Sets [`required`](Self::required).
    #[must_use]
    pub fn with_required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets [`strictness`](Self::strictness).
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets [`compile`](Self::compile).
    #[must_use]
    pub fn with_compile_options(mut self, options: CompileOptions) -> Self {
        self.compile = options;
        self
    }

    /// Sets [`policies`](Self::policies).
    #[must_use]
    pub fn with_policies(mut self, read: fn(&Layered, &mut Problems) -> PolicyConfigs) -> Self {
        self.policies = Some(read);
        self
    }

    /// Sets [`reload`](Self::reload).
    #[must_use]
    pub fn with_reload(mut self, reload: Arc<Notify>) -> Self {
        self.reload = Some(reload);
        self
    }

    /// Reads files and follows them, in a task of the current tokio runtime that ends when the provider is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing, cannot be read, or cannot be parsed. A program that starts
    /// should report that and end. Unusable values show in the merged configuration, since
    /// [filters](crate::ConfigFilter) may still change them.
    ///
    /// # Panics
    ///
    /// Panics when polled outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; then the files are not followed.
    pub async fn open<P: Into<PathBuf>>(
        self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<FileProvider, FileError> {
        self.open_layers(Layers::of_files(paths)).await
    }

    /// Reads layers and follows them, as [`open`](Self::open) does for files alone.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    ///
    /// # Panics
    ///
    /// Panics when polled outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time; then the files are not followed.
    pub async fn open_layers(self, layers: Layers) -> Result<FileProvider, FileError> {
        if layers.is_empty() {
            return Err(FileError::NoFile);
        }
        // The watch comes first, so that no change between reading and watching is missed.
        let watch = if self.watch {
            DirectoryWatch::new(&layers)
        } else {
            DirectoryWatch::off()
        };
        let (name, required, strictness) = (Arc::clone(&self.name), self.required, self.strictness);
        let (follower, state) = Follower::start(Arc::new(layers), self, watch).await?;
        Ok(FileProvider {
            name,
            required,
            strictness,
            state,
            task: tokio::spawn(follower.run()).abort_handle(),
        })
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    paths.join(" with ")
}

fn quoted(path: &Path) -> String {
    format!("`{}`", path.display())
}
