use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The destination of lines.
pub struct Output(Kind);

enum Kind {
    /// A file that is appended to, and can be reopened under its name.
    Named(PathBuf, File),
    /// A duplicate of a standard stream: no lock of the standard library is held while it blocks.
    #[cfg(unix)]
    Unnamed(File),
    Stream(Box<dyn Write + Send>),
}

impl Output {
    /// Returns a file that is created if there is none, and appended to.
    ///
    /// # Errors
    ///
    /// The system's error if the file cannot be opened.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self(Kind::Named(path.to_owned(), append(path)?)))
    }

    /// Returns standard output.
    pub fn stdout() -> Self {
        #[cfg(unix)]
        if let Some(output) = duplicate(&io::stdout()) {
            return output;
        }
        Self::stream(io::stdout())
    }

    /// Returns standard error.
    pub fn stderr() -> Self {
        #[cfg(unix)]
        if let Some(output) = duplicate(&io::stderr()) {
            return output;
        }
        Self::stream(io::stderr())
    }

    /// Returns an output over any writer, which should not buffer.
    pub fn stream(stream: impl Write + Send + 'static) -> Self {
        Self(Kind::Stream(Box::new(stream)))
    }

    /// Reopens a file under its name. Returns false for an output that has none.
    pub(crate) fn reopen(&mut self) -> io::Result<bool> {
        match &mut self.0 {
            Kind::Named(path, file) => {
                *file = append(path)?;
                Ok(true)
            }
            #[cfg(unix)]
            Kind::Unnamed(_) => Ok(false),
            Kind::Stream(_) => Ok(false),
        }
    }

    /// Returns the length of a regular file in bytes. `None` for any other output.
    pub(crate) fn length(&self) -> Option<u64> {
        let file = match &self.0 {
            Kind::Named(_, file) => file,
            #[cfg(unix)]
            Kind::Unnamed(file) => file,
            Kind::Stream(_) => return None,
        };
        let metadata = file.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Named(_, file) => file.write(bytes),
            #[cfg(unix)]
            Kind::Unnamed(file) => file.write(bytes),
            Kind::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Stream(stream) => stream.flush(),
            // Files do not buffer.
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Named(path, _) => f.debug_tuple("Output").field(path).finish(),
            _ => f.write_str("Output"),
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(unix)]
fn duplicate(stream: &impl std::os::fd::AsFd) -> Option<Output> {
    let file = stream.as_fd().try_clone_to_owned().ok()?;
    Some(Output(Kind::Unnamed(File::from(file))))
}
