use std::path::Path;

use azure_loadbalancer::sources::{FromDocument, read_documents};
use azure_loadbalancer::{Config, Node, Service};
use serde_json::Value;

use super::cli::Inputs;
use super::failure::{Failure, read};

/// What is wanted, from files.
pub(super) struct Wanted {
    pub(super) config: Config,
    pub(super) services: Vec<Service>,
    pub(super) nodes: Vec<Node>,
}

impl Wanted {
    pub(super) fn read(inputs: &Inputs) -> Result<Self, Failure> {
        Ok(Self {
            config: config(&inputs.config)?,
            services: documents(&inputs.services)?,
            nodes: inputs
                .nodes
                .as_deref()
                .map_or_else(|| Ok(Vec::new()), documents)?,
        })
    }
}

pub(super) fn config(path: &Path) -> Result<Config, Failure> {
    let text = read(path)?;
    let fail = |error: &dyn std::error::Error| Failure::new(format!("{}: {error}", path.display()));
    let config: Config = serde_json::from_str(&text).map_err(|error| {
        let hint = "`azure-loadbalancer schema` prints what it may have";
        Failure::new(format!("{}: {error}; {hint}", path.display()))
    })?;
    config.validate().map_err(|error| fail(&error))?;
    Ok(config)
}

fn documents<T: FromDocument>(path: &Path) -> Result<Vec<T>, Failure> {
    let text = read(path)?;
    read_documents(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// Resources as `GET /emulator/resources` writes them, or a plain list.
pub(super) fn resources(path: &Path) -> Result<Vec<Value>, Failure> {
    let text = read(path)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    let list = match value {
        Value::Object(mut object) => object.remove("value").unwrap_or(Value::Null),
        other => other,
    };
    match list {
        Value::Array(resources) => Ok(resources),
        _ => Err(Failure::new(format!(
            "{}: a list of resources is wanted, or an object with one as `value`",
            path.display()
        ))),
    }
}
