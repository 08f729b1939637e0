//! The image store: packages that clients have uploaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::entity::ApplicationType;
use super::error::{ErrorCode, FabricError};
use super::package::{APPLICATION_MANIFEST, MAX_MANIFEST, SERVICE_MANIFEST};
use super::state::Cluster;
use crate::hosting::Timestamp;

/// The maximum number of files.
const MAX_FILES: usize = 100_000;

/// The maximum size of all manifests together, in bytes.
const MAX_KEPT: usize = 64 << 20;

/// The files by their paths, with `/` between segments. For manifests the text is kept, for all others the
/// size.
#[derive(Clone, Debug, Default)]
pub(super) struct ImageStore {
    files: BTreeMap<String, StoredFile>,
    kept: usize,
}

/// A file in the image store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFile {
    /// The size in bytes.
    pub size: u64,
    /// The time of the upload.
    pub modified: Timestamp,
    text: Option<Arc<str>>,
}

/// The content of a directory of the image store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredContent {
    /// The files, by path.
    pub files: Vec<(String, StoredFile)>,
    /// The directories, each with the number of files below it.
    pub folders: Vec<(String, usize)>,
}

impl Cluster {
    /// Stores a file of `size` bytes in the image store. `content` is only required for manifests.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for an invalid path and for a manifest that is no text, `FABRIC_E_VALUE_TOO_LARGE` if
    /// it exceeds 1 MiB, `E_FAIL` if the store is full.
    pub fn upload(&mut self, path: &str, size: u64, content: &[u8]) -> Result<(), FabricError> {
        let path = checked(path)?;
        let text = match is_manifest(&path) {
            false => None,
            true if size > MAX_MANIFEST as u64 => {
                let message = format!("the manifest '{path}' has more than {MAX_MANIFEST} bytes");
                return Err(FabricError::new(ErrorCode::ValueTooLarge, message));
            }
            true => Some(text_of(&path, content)?),
        };
        let store = &mut self.uploads;
        let before = store.files.get(&path).map_or(0, StoredFile::kept);
        let kept = store.kept - before + text.as_ref().map_or(0, |text| text.len());
        // A file may be replaced even in a full store.
        let is_new = !store.files.contains_key(&path);
        if kept > MAX_KEPT || (is_new && store.files.len() >= MAX_FILES) {
            let message = format!(
                "the image store is full: {MAX_FILES} files, and manifests of {MAX_KEPT} bytes, fit into it"
            );
            return Err(FabricError::new(ErrorCode::Fail, message));
        }
        store.kept = kept;
        let modified = self.now;
        store.files.insert(
            path,
            StoredFile {
                size,
                modified,
                text,
            },
        );
        Ok(())
    }

    /// Returns the content at a path of the image store. The empty path is its root. `None`: no file or
    /// directory has this path.
    pub fn stored(&self, path: &str) -> Option<StoredContent> {
        let path = path.trim_matches('/');
        if let Some(file) = self.uploads.files.get(path) {
            return Some(StoredContent {
                files: vec![(path.to_owned(), file.clone())],
                folders: Vec::new(),
            });
        }
        let prefix = match path {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let mut content = StoredContent::default();
        let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, file) in self.uploads.below(&prefix) {
            let inner = &name[prefix.len()..];
            match inner.split_once('/') {
                None => content.files.push((name.to_owned(), file.clone())),
                Some((folder, _)) => {
                    *folders
                        .entry(&name[..prefix.len() + folder.len()])
                        .or_default() += 1;
                }
            }
        }
        let owned = |(name, count): (&str, usize)| (name.to_owned(), count);
        content.folders = folders.into_iter().map(owned).collect();
        let is_empty = content.files.is_empty() && content.folders.is_empty();
        (!is_empty || path.is_empty()).then_some(content)
    }

    /// Removes a file, or a directory with its content. Types that were provisioned from it stay.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_FILE_NOT_FOUND`.
    pub fn delete_upload(&mut self, path: &str) -> Result<(), FabricError> {
        let path = checked(path)?;
        let below = format!("{path}/");
        let store = &mut self.uploads;
        let mut gone: BTreeSet<String> = store.below(&below).map(|(n, _)| n.to_owned()).collect();
        gone.extend(store.files.contains_key(&path).then_some(path.clone()));
        if gone.is_empty() {
            let message = format!("the image store has nothing at '{path}'");
            return Err(FabricError::new(ErrorCode::FileNotFound, message));
        }
        for name in gone {
            let file = store.files.remove(&name);
            store.kept -= file.as_ref().map_or(0, StoredFile::kept);
        }
        Ok(())
    }

    /// Returns the application type of an uploaded package. `None`: no package was uploaded to this path.
    pub(super) fn uploaded(&self, path: &str) -> Option<Result<ApplicationType, FabricError>> {
        let path = path.trim_matches('/');
        self.uploads
            .files
            .get(&format!("{path}/{APPLICATION_MANIFEST}"))?;
        let read = ApplicationType::from_package(|file| {
            let stored = self.uploads.files.get(&format!("{path}/{file}"))?;
            stored.text.as_deref().map(str::to_owned)
        });
        Some(read.map_err(|error| {
            FabricError::invalid_argument(format!("the package at '{path}': {error}"))
        }))
    }
}

impl ImageStore {
    /// Returns the files whose path begins with `prefix`.
    fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a StoredFile)> {
        self.files
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(prefix))
            .map(|(name, file)| (name.as_str(), file))
    }
}

impl StoredFile {
    fn kept(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }
}

fn checked(path: &str) -> Result<String, FabricError> {
    let path = path.trim_matches('/');
    let is_odd = |segment: &str| segment.is_empty() || segment == "." || segment == "..";
    if path.len() > 1024 || path.split('/').any(is_odd) || path.contains(char::is_control) {
        let shown: String = path.chars().take(120).collect();
        let message = format!("'{shown}' is no path in the image store");
        return Err(FabricError::invalid_argument(message));
    }
    Ok(path.to_owned())
}

fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    [APPLICATION_MANIFEST, SERVICE_MANIFEST].contains(&name)
}

/// Decodes a manifest: UTF-8, or UTF-16 with a byte order mark, as some editors write it.
fn text_of(path: &str, content: &[u8]) -> Result<Arc<str>, FabricError> {
    let units = |read: fn([u8; 2]) -> u16| {
        let units = content[2..]
            .chunks_exact(2)
            .map(|pair| read([pair[0], pair[1]]));
        String::from_utf16(&units.collect::<Vec<_>>()).ok()
    };
    // The byte order mark distinguishes the two forms of UTF-16.
    let text = match content {
        [0xFF, 0xFE, ..] => units(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => units(u16::from_be_bytes),
        _ => std::str::from_utf8(content).ok().map(str::to_owned),
    };
    text.map(Into::into).ok_or_else(|| {
        FabricError::invalid_argument(format!("the manifest '{path}' is neither UTF-8 nor UTF-16"))
    })
}
