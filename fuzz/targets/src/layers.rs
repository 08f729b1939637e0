//! Layers of a configuration: files with flattened keys, and settings.

use proxy_model::json::{Layer, Layered, Setting};
use proxy_model::{CompileOptions, Problems, Snapshot};

use crate::input::{check_message, text};

/// Separator of the layers of an input. A layer that begins with `=` has settings: lines of `key=value`.
const BETWEEN: &str = "\n=====\n";

/// The most layers of an input.
const MOST_LAYERS: usize = 4;

/// Fuzzes the merge of layers.
///
/// * Each value of the document has an origin, which is the one that a problem there gets.
/// * A document has no keys left to take apart, and a layer with nothing changes nothing.
/// * The merged document can be read.
pub fn layers(data: &[u8]) {
    let whole = text(data);
    let layers: Vec<Layer> = (whole.split(BETWEEN).take(MOST_LAYERS).enumerate())
        .map(|(index, part)| layer(index, part))
        .collect();
    let layered = match Layered::new(layers.clone()) {
        Ok(layered) => layered,
        Err(problems) => {
            for problem in &problems {
                assert!(problem.origin.is_some(), "{problem}");
                check_message(&problem.message);
            }
            return;
        }
    };
    for value in layered.values() {
        assert!(!value.origin.is_empty(), "{value:?}");
        assert_eq!(layered.origins.of(&value.pointer), Some(value.origin));
    }
    let mut problems = Problems::new();
    assert_eq!(layered.node.clone().nested(&mut problems), layered.node);
    assert!(problems.is_empty(), "{problems}");
    let mut more = layers;
    more.push(Layer::Settings(Vec::new()));
    let more = Layered::new(more).expect("it could be read without the empty layer");
    assert_eq!(more.node, layered.node);
    if let Some(section) = layered.node.get("ReverseProxy") {
        let _ = Snapshot::read_isolated(section, "/ReverseProxy", &CompileOptions::default());
    }
}

fn layer(index: usize, part: &str) -> Layer {
    let Some(lines) = part.strip_prefix('=') else {
        return Layer::File {
            name: format!("file {index}"),
            text: part.to_owned(),
        };
    };
    let settings = lines.lines().filter_map(|line| line.split_once('='));
    Layer::Settings(
        settings
            .map(|(key, value)| Setting {
                key: key.to_owned(),
                value: value.to_owned(),
                origin: format!("variable {key}"),
            })
            .collect(),
    )
}
