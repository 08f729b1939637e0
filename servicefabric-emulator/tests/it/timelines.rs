//! The example scripts and their outcomes: each `timelines/NAME.toml` with its `timelines/NAME.log`.
//!
//! After an intended change of the logs, `UPDATE_TIMELINES=1 cargo test -p servicefabric-emulator --test
//! timelines` rewrites them; review the difference before committing it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use servicefabric_emulator::timeline::Script;

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn examples_lead_to_their_logs() {
    let scripts = scripts();
    assert!(scripts.len() >= 10, "the examples are missing");
    let update = std::env::var_os("UPDATE_TIMELINES").is_some();
    for path in scripts {
        let text = fs::read_to_string(&path).unwrap();
        let script =
            Script::read(&text).unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()));
        let log = script.run().to_string();
        let expected = path.with_extension("log");
        if update {
            fs::write(&expected, &log).unwrap();
        }
        // A checkout may have converted line ends.
        let expected = fs::read_to_string(&expected).unwrap().replace("\r\n", "\n");
        assert_eq!(log, expected, "{}", path.display());
    }
}

#[test]
fn a_script_runs_the_same_every_time() {
    for path in scripts() {
        let script = Script::read(&fs::read_to_string(&path).unwrap()).unwrap();
        let json = || serde_json::to_string(&script.run()).unwrap();
        assert_eq!(json(), json(), "{}", path.display());
    }
}
