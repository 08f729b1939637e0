//! Checks every target with its seeds and with a few thousand mutations of them.
//!
//! The inputs are the same in every run. `FUZZ_INPUTS=1000000` tries more of them, best with
//! `--release`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use fuzz_targets::mutation::Mutator;
use fuzz_targets::{TARGETS, Target};

/// Number of inputs per target.
const INPUTS: usize = 5_000;

fn seeds_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = seeds_directory().join(target);
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    assert!(!files.is_empty(), "{target} has no seeds");
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Runs a target. Prints the failing input, so that it can become a seed.
fn run(name: &str, target: Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
        panic!(
            "{name} does not hold for this input:\n{}\n",
            input.escape_ascii()
        );
    }
}

fn run_all(name: &str, inputs: usize) {
    let (_, target) = *TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let seeds = seeds(name);
    run(name, target, b"");
    for seed in &seeds {
        run(name, target, seed);
    }
    let wanted = std::env::var("FUZZ_INPUTS").ok();
    let inputs = wanted.map_or(inputs, |wanted| wanted.parse().unwrap());
    let mut mutator = Mutator::new(&seeds);
    for _ in 0..inputs {
        run(name, target, &mutator.next_input());
    }
}

macro_rules! tests {
    ($($target:ident: $inputs:expr),* $(,)?) => {
        $(
            #[test]
            fn $target() {
                run_all(stringify!($target), $inputs);
            }
        )*

        #[test]
        fn every_target_is_tested_and_no_seed_is_forgotten() {
            let mut known: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
            let mut tested = vec![$(stringify!($target).to_owned()),*];
            let files = fs::read_dir(seeds_directory()).unwrap();
            let mut seeded: Vec<_> = files
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            let manifest = include_str!("../../Cargo.toml");
            for name in &known {
                let entry = format!("name = \"{name}\"\npath = \"programs/{name}.rs\"\n");
                assert!(manifest.contains(&entry), "{name} has no program");
            }
            known.sort_unstable();
            tested.sort_unstable();
            seeded.sort_unstable();
            assert_eq!(tested, known);
            assert_eq!(seeded, known);
        }
    };
}

tests! {
    affinity_cookie: INPUTS,
    // Passwords are checked by slow hashes, each request in a runtime.
    authorization: INPUTS / 5,
    config: INPUTS,
    config_diff: INPUTS,
    // Each input is the answer to every call, twice.
    consul_answers: INPUTS / 5,
    // Each input is a Consul in memory, twice, with a runtime.
    consul_tags: INPUTS / 20,
    // Each input builds a cluster.
    emulator_package: INPUTS / 5,
    // Each input starts an emulator.
    emulator_request: INPUTS / 10,
    // Each input is run twice.
    emulator_timeline: INPUTS / 5,
    emulator_topology: INPUTS / 5,
    explain: INPUTS,
    header_matcher: INPUTS,
    host_pattern: INPUTS,
    http1_chunked: 2_000,
    http1_request: 2_000,
    http1_response: 2_000,
    // Each input is served by `h2`.
    http2_blocks: INPUTS / 5,
    // Each request is sent by `h2`.
    http2_heads: INPUTS,
    // Each input is a request in a runtime.
    jwt: INPUTS / 2,
    labels: INPUTS,
    // Each input writes a file and starts a runtime.
    last_good: INPUTS / 10,
    layers: INPUTS,
    // Each input is two requests in a runtime.
    origin: INPUTS / 5,
    proxy_header: INPUTS,
    query_matcher: INPUTS,
    redis_replies: INPUTS,
    route_table: INPUTS,
    route_template: INPUTS,
    // Each input is converted twice, written and read again.
    serf_catalog: INPUTS / 10,
    // Each input is sent five times, each time to another client.
    serf_frames: INPUTS / 5,
    serf_messages: INPUTS / 5,
    // Each input is the answer to every call, each with a runtime.
    servicefabric_answers: INPUTS / 5,
    servicefabric_endpoints: INPUTS,
    servicefabric_extension: INPUTS,
    // Each input is laid out three times.
    servicefabric_labels: INPUTS / 10,
    time_span: INPUTS,
    xds_resources: INPUTS,
    yaml: INPUTS,
}

#[test]
fn the_same_inputs_come_in_every_run_and_are_many() {
    let seeds = [b"abc def".to_vec(), b"ghi".to_vec()];
    let inputs = || {
        let mut mutator = Mutator::new(&seeds);
        (0..1_000).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    let mut first = inputs();
    assert_eq!(first, inputs());
    first.sort_unstable();
    first.dedup();
    assert!(first.len() > 500, "only {} are different", first.len());
}
