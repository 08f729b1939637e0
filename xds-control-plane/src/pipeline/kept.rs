//! The served snapshot on disk, so that a restart while the sources are unavailable still serves.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use discovery_core::{Replacement, check_directory};
use prost::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::assemble::{Owner, ServiceResources, UnknownZones};

/// The beginning of the first line. The number is the version of the format.
const MAGIC: &str = "xds-last-served 1";

/// The largest file that is read back.
const MOST_BYTES: u64 = 512 << 20;

/// One file: a line with a checksum, and the services as JSON, their messages in base64.
///
/// It is [replaced](Replacement) as a whole: a crash at any point leaves the old or the new content.
#[derive(Debug, Clone)]
pub(super) struct KeptFile {
    path: PathBuf,
}

/// The reason why it could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeptError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {why}", path.display())]
    Format { path: PathBuf, why: String },
}

#[derive(Serialize, Deserialize)]
struct KeptService {
    source: String,
    service: String,
    clusters: Vec<String>,
    assignments: Vec<String>,
    virtual_hosts: Vec<String>,
    listeners: Vec<String>,
    refresh_delay_ms: Option<u64>,
    #[serde(default)]
    unknown_endpoints: Vec<String>,
}

impl KeptFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes the services. Blocks.
    pub(super) fn save(&self, services: &[ServiceResources]) -> Result<(), KeptError> {
        let services: Vec<_> = services.iter().map(KeptService::of).collect();
        let body = serde_json::to_vec(&services).map_err(|error| self.format(error.to_string()))?;
        let head = format!("{MAGIC} {}\n", checksum(&body));
        let written = Replacement::write(&self.path, &[head.as_bytes(), &body]);
        let written = written.and_then(Replacement::commit);
        written.map_err(|source| self.io(source))
    }

    /// Reads the kept services. Returns `None` if there is no file. Blocks.
    pub(super) fn load(&self) -> Result<Option<Vec<ServiceResources>>, KeptError> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(file) => file
                .take(MOST_BYTES)
                .read_to_end(&mut bytes)
                .map_err(|error| self.io(error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io(error)),
        };
        // Anyone who can put a file here decides where requests go.
        check_directory(&self.path).map_err(|error| self.io(error))?;
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let (head, body) = bytes.split_at_checked(end + 1).unwrap_or_default();
        let expected = format!("{MAGIC} {}\n", checksum(body));
        if head != expected.as_bytes() {
            return Err(self.format("it is of another version, or was torn or changed".to_owned()));
        }
        let services: Vec<KeptService> =
            serde_json::from_slice(body).map_err(|error| self.format(error.to_string()))?;
        let services: Result<Vec<_>, _> = services.into_iter().map(KeptService::read).collect();
        services.map(Some).map_err(|why| self.format(why))
    }

    fn io(&self, source: io::Error) -> KeptError {
        let path = self.path.clone();
        KeptError::Io { path, source }
    }

    fn format(&self, why: String) -> KeptError {
        let path = self.path.clone();
        KeptError::Format { path, why }
    }
}

impl KeptService {
    fn of(service: &ServiceResources) -> Self {
        Self {
            source: service.owner.source.to_string(),
            service: service.owner.service.to_string(),
            clusters: encoded(&service.clusters),
            assignments: encoded(&service.assignments),
            virtual_hosts: encoded(&service.virtual_hosts),
            listeners: encoded(&service.listeners),
            refresh_delay_ms: service
                .refresh_delay
                .map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            unknown_endpoints: service.unknown_endpoints.keys().cloned().collect(),
        }
    }

    fn read(self) -> Result<ServiceResources, String> {
        Ok(ServiceResources {
            owner: Owner::new(self.source, self.service),
            clusters: decoded(&self.clusters)?,
            assignments: decoded(&self.assignments)?,
            virtual_hosts: decoded(&self.virtual_hosts)?,
            listeners: decoded(&self.listeners)?,
            refresh_delay: self.refresh_delay_ms.map(Duration::from_millis),
            unknown_endpoints: self
                .unknown_endpoints
                .into_iter()
                .map(|name| (name, UnknownZones::default()))
                .collect(),
            is_partial: false,
        })
    }
}

fn encoded<M: Message>(messages: &[M]) -> Vec<String> {
    let messages = messages.iter();
    messages
        .map(|message| STANDARD.encode(message.encode_to_vec()))
        .collect()
}

fn decoded<M: Message + Default>(texts: &[String]) -> Result<Vec<M>, String> {
    let decode = |text: &String| {
        let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
        M::decode(bytes.as_slice()).map_err(|error| error.to_string())
    };
    texts.iter().map(decode).collect()
}

fn checksum(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::assemble::testing::{listener, service};

    #[test]
    fn what_is_kept_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeptFile::new(folder.path().join("last"));
        assert!(file.load().unwrap().is_none());
        let mut kept = service("registry", "a");
        kept.listeners.push(listener("in", 80));
        kept.refresh_delay = Some(Duration::from_millis(1500));
        for services in [vec![kept.clone()], vec![kept, service("consul", "b")]] {
            file.save(&services).unwrap();
            assert_eq!(file.load().unwrap().unwrap(), services);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_was_torn_or_changed_anywhere_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeptFile::new(folder.path().join("last"));
        file.save(&[service("registry", "a")]).unwrap();
        let whole = fs::read(&file.path).unwrap();
        for length in 0..whole.len() {
            fs::write(&file.path, &whole[..length]).unwrap();
            assert!(file.load().is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&file.path, &changed).unwrap();
            assert!(file.load().is_err(), "{at}");
        }
    }
}
