use serde::Serialize;

use crate::cluster::{StoredContent, StoredFile};
use crate::gateway::wire::ClockStart;

/// `ImageStoreContent`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImageStoreContent<'a> {
    store_files: Vec<FileInfo<'a>>,
    store_folders: Vec<FolderInfo<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FileInfo<'a> {
    file_size: String,
    file_version: FileVersion,
    modified_date: String,
    store_relative_path: &'a str,
}

/// The version of a file. A file is written once; a second upload creates another file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FileVersion {
    version_number: &'static str,
    epoch_data_loss_number: &'static str,
    epoch_configuration_number: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct FolderInfo<'a> {
    store_relative_path: &'a str,
    file_count: String,
}

impl<'a> ImageStoreContent<'a> {
    pub(crate) fn new(content: &'a StoredContent, epoch: ClockStart) -> Self {
        let file = |(path, file): &'a (String, StoredFile)| FileInfo {
            file_size: file.size.to_string(),
            file_version: FileVersion {
                version_number: "1",
                epoch_data_loss_number: "1",
                epoch_configuration_number: "1",
            },
            modified_date: epoch.date(file.modified),
            store_relative_path: path,
        };
        let folder = |(path, count): &'a (String, usize)| FolderInfo {
            store_relative_path: path,
            file_count: count.to_string(),
        };
        Self {
            store_files: content.files.iter().map(file).collect(),
            store_folders: content.folders.iter().map(folder).collect(),
        }
    }
}
