//! HTTP/1.1 messages compared with `llhttp`, the parser of Node: it accepts all that this crate
//! accepts, with the same meaning.
//!
//! `cargo xtask peers httptools` installs it. The compared streams are the messages that `cases`
//! lists, and combinations of pieces that parsers disagree about; the generator makes the same
//! cases in every run.
//!
//! Cases where llhttp is narrower than RFC 9110 are excluded: it knows registered methods only.
//!
//! `STREAMS=DIRECTORY` compares the files of a directory as well, such as a fuzzer's corpus of requests:
//! `STREAMS=fuzz/corpus/http1_request cargo test -p proxy-runtime --test it llhttp::requests`.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cases;
mod ours;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use testkit::peers::{self, Peer};

use self::ours::Message;

/// Number of generated streams.
const GENERATED: usize = 8_000;

/// Time limit of the script, which takes a second.
const LIMIT: Duration = Duration::from_secs(120);

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Response,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

#[tokio::test]
async fn requests_mean_the_same_to_llhttp() {
    compare(Kind::Request, cases::requests(GENERATED)).await;
}

#[tokio::test]
async fn responses_mean_the_same_to_llhttp() {
    compare(Kind::Response, cases::responses(GENERATED)).await;
}

async fn compare(kind: Kind, mut streams: Vec<Vec<u8>>) {
    let Some(python) = peers::find("httptools-python") else {
        return;
    };
    if let Some(directory) = std::env::var_os("STREAMS") {
        let files = std::fs::read_dir(directory).unwrap();
        streams.extend(files.map(|file| std::fs::read(file.unwrap().path()).unwrap()));
        streams.retain(|stream| !stream.is_empty());
    }
    let theirs = parse(&python, kind, &streams).await;
    assert_eq!(theirs.len(), streams.len());
    let mut compared = 0;
    for (stream, theirs) in streams.iter().zip(&theirs) {
        let ours = match kind {
            Kind::Request => ours::requests(stream),
            Kind::Response => ours::responses(stream),
        };
        compared += ours.len();
        let read = theirs["messages"].as_array().expect("a list");
        let stopped = &theirs["stopped"];
        assert!(
            read.len() >= ours.len(),
            "llhttp stopped early ({stopped}): {}",
            stream.escape_ascii()
        );
        for (ours, theirs) in ours.iter().zip(read) {
            assert_eq!(*ours, message(theirs), "{}", stream.escape_ascii());
        }
    }
    // Guards against a comparison of nothing.
    assert!(compared > GENERATED / 8, "{compared} messages");
}

fn message(value: &Value) -> Message {
    let text = |part: &str| value[part].as_str().unwrap_or_default().to_owned();
    let fields = value["fields"].as_array().into_iter().flatten();
    Message {
        start: text("start"),
        target: text("target"),
        version: text("version"),
        fields: fields
            .map(|field| {
                let part = |at: usize| field[at].as_str().unwrap_or_default().to_owned();
                // llhttp keeps trailing white space of a value.
                (part(0), part(1).trim_end_matches([' ', '\t']).to_owned())
            })
            .collect(),
        body: text("body"),
    }
}

async fn parse(python: &Peer, kind: Kind, streams: &[Vec<u8>]) -> Vec<Value> {
    let mut lines = String::new();
    for stream in streams {
        lines.push_str(kind.name());
        lines.push(' ');
        for byte in stream {
            let _ = write!(lines, "{byte:02x}");
        }
        lines.push('\n');
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}s.txt", kind.name()));
    std::fs::write(&file, lines).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/llhttp/parse.py");
    let mut command = python.command();
    command.args(["-B", script]).arg(&file);
    let done = peers::output_within(LIMIT, command).await.expect_success();
    let answers = done.stdout.lines();
    answers
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
