//! Case ids (`F01`, `G03`) are those of the table of YARP's behaviour that these tests follow.

mod defaults;
mod target;
mod validation;

use super::Transforms;
use crate::config::TransformConfig;
use crate::problem::Problems;

/// Entries written as `&[&[("PathSet", "/a")]]`.
type Entries<'a> = &'a [&'a [(&'a str, &'a str)]];

fn compile(entries: Entries<'_>) -> (Option<Transforms>, Problems) {
    let configs: Vec<TransformConfig> = entries
        .iter()
        .map(|entry| {
            entry
                .iter()
                .map(|(k, v)| ((*k).into(), (*v).into()))
                .collect()
        })
        .collect();
    let mut problems = Problems::new();
    let transforms = Transforms::compile(&configs, "/Routes/r/Transforms", &mut problems);
    (transforms, problems)
}

fn compiled(entries: Entries<'_>) -> Transforms {
    let (transforms, problems) = compile(entries);
    assert!(problems.is_empty(), "{problems}");
    transforms.unwrap()
}
