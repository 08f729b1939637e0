//! Tests of the paths that templates accept, match and make.

mod formatting;
mod matching;
mod parsing;

use super::PathTemplate;

fn parse(text: &str) -> PathTemplate {
    PathTemplate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
