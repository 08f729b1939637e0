//! The file with the last known good configuration.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use discovery_core::{
    DiscoverError, Discoverer, Discovery, ProviderState, Runner, RunnerOptions, SourceState,
};
use proxy_model::{CompileOptions, Snapshot};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::input::MAX_BYTES;

/// First line of the file.
const MAGIC: &str = "discovery-last-good 1";

/// Name of the source of the file.
const SOURCE: &str = "source";

/// Fuzzes a last-known-good file. The first line is the operation: `raw` takes the rest as the
/// file. Otherwise the rest is the content of a valid file, which is kept (`whole`), cut to N bytes
/// (`cut N`), or has bit N flipped (`flip N`).
///
/// * A file with a wrong length or checksum is rejected.
/// * The served configuration is valid and comes from the file.
pub fn last_good(data: &[u8]) {
    let data = &data[..data.len().min(MAX_BYTES)];
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (line, rest) = data.split_at(end);
    let content = rest.strip_prefix(b"\n").unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (what, number) = line.split_once(' ').unwrap_or((&line, "0"));
    let number: usize = number.trim().parse().unwrap_or_default();
    let mut file = match what {
        "raw" => content.to_vec(),
        _ => right_file(content),
    };
    match what {
        "cut" => file.truncate(number % file.len()),
        "flip" => {
            let bit = number % (8 * file.len());
            file[bit / 8] ^= 1 << (bit % 8);
        }
        _ => {}
    }

    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("last-good");
    fs::write(&path, &file).expect("a file can be written");
    let state = restored(&path);
    let Some(config) = &state.config else {
        return;
    };
    assert_eq!(state.status.state, SourceState::Restored);
    let content = verified(&file).expect("what serves had the right length and checksum");
    if let Err(errors) = Snapshot::compile(Arc::clone(config), &CompileOptions::default()) {
        panic!("what serves is not valid: {errors}");
    }
    let content: serde_json::Value = serde_json::from_slice(content).expect("it was read");
    let told = content.to_string();
    let clusters = config.clusters.keys().map(|id| id.as_str());
    let routes = config.routes.keys().map(|id| id.as_str());
    for id in clusters.chain(routes) {
        let id = serde_json::Value::from(id).to_string();
        assert!(told.contains(&id), "{id} did not come from the file");
    }
}

/// The served state before the first answer of the source.
fn restored(path: &Path) -> Arc<ProviderState> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        let asked = Arc::new(Notify::new());
        let mut options = RunnerOptions::default();
        options.persist = Some(path.to_owned());
        let provider = Runner::new(Silent(Arc::clone(&asked)))
            .options(options)
            .start();
        // The source is polled after the file has been read.
        asked.notified().await;
        provider.state()
    })
}

/// A source that never answers.
struct Silent(Arc<Notify>);

#[async_trait]
impl Discoverer for Silent {
    fn name(&self) -> &str {
        SOURCE
    }

    async fn discover(&self) -> Result<Discovery, DiscoverError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Builds a valid file with this content.
fn right_file(content: &[u8]) -> Vec<u8> {
    let mut file = format!("{MAGIC} {} {}\n", content.len(), checksum(content)).into_bytes();
    file.extend_from_slice(content);
    file
}

/// The content of a file with a correct length and checksum.
fn verified(file: &[u8]) -> Option<&[u8]> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let content = &file[end + 1..];
    let right = right_file(content);
    (right == file).then_some(content)
}

fn checksum(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(content) {
        write!(text, "{byte:02x}").expect("a string can be written to");
    }
    text
}
