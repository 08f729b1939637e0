//! Labels from the extensions of service manifests.
//!
//! The owner of a service writes labels into an extension of the service's type. They are the same for all services of
//! the type; parameters of the application and properties of the service's name make them different:
//!
//! ```text
//! extension of the type ─▶ declared labels ─▶ `[Parameter]` replaced
//!                       ─▶ properties of the name applied ─▶ labels of a service
//! ```

mod bounds;
mod overrides;
mod parameters;
#[cfg(test)]
mod tests;
mod xml;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use discovery_core::Labels;
use proxy_model::{Problem, Problems};

use self::overrides::overridden;
pub use self::parameters::Parameters;
use crate::calls::{CallError, ClusterCalls};
use crate::model::{Extension, ServiceType};

/// Names of the extension, the one that counts most first.
pub const EXTENSION_NAMES: [&str; 3] = ["YARP-preview", "YARP", "Yarp"];

/// The prefix of labels. Case is ignored; a label is stored with this spelling.
pub(crate) const PREFIX: &str = "YARP.";

/// Finds the labels of services.
///
/// The default is [`ExtensionLabels`]. Another implementation may read them from a file beside the proxy,
/// or from properties alone. Calls are made with the given `calls`, so that old responses can be used while
/// the cluster fails.
///
/// # Cancel safety
///
/// Each future may be dropped at any await point. Nothing may be kept between calls.
#[async_trait]
pub trait LabelsProvider: Send + Sync {
    /// Returns the labels of the service types that an application type declares in one version. Types
    /// without labels are left out, and their services are skipped.
    ///
    /// # Errors
    ///
    /// Returns an error if a call failed. Problems of the content that was read are in
    /// [`DeclaredLabels::problems`].
    async fn declared(
        &self,
        calls: &dyn ClusterCalls,
        application_type: &str,
        version: &str,
        types: &[ServiceType],
    ) -> Result<DeclaredTypes, CallError>;

    /// The labels of one service.
    ///
    /// # Errors
    ///
    /// Returns an error if a call failed.
    async fn labels(
        &self,
        calls: &dyn ClusterCalls,
        service: LabelledBy<'_>,
    ) -> Result<ServiceLabels, CallError>;
}

/// The types that have labels, by name.
pub type DeclaredTypes = BTreeMap<String, Arc<DeclaredLabels>>;

/// The labels of a type of services, as written.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeclaredLabels {
    /// The labels. `None` if they cannot be read, so that their content is unknown.
    pub labels: Option<Arc<Labels>>,
    /// Problems of the labels, with pointers that begin at the service.
    pub problems: Problems,
}

impl DeclaredLabels {
    /// Creates labels without problems.
    pub fn new(labels: Labels) -> Self {
        Self {
            labels: Some(Arc::new(labels)),
            problems: Problems::new(),
        }
    }

    pub(crate) fn unreadable(problem: Problem) -> Self {
        Self {
            labels: None,
            problems: problem.into(),
        }
    }
}

/// The sources of a service's labels.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LabelledBy<'a> {
    /// The service's name.
    pub service: &'a str,
    /// The service's id in paths.
    pub service_id: &'a str,
    /// The labels that its type declares.
    pub declared: &'a DeclaredLabels,
    /// The parameters of its application.
    pub parameters: &'a Parameters,
}

impl<'a> LabelledBy<'a> {
    /// Creates the sources of a service's labels.
    pub fn new(
        service: &'a str,
        service_id: &'a str,
        declared: &'a DeclaredLabels,
        parameters: &'a Parameters,
    ) -> Self {
        Self {
            service,
            service_id,
            declared,
            parameters,
        }
    }
}

/// The labels of a service.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServiceLabels {
    /// The labels, ready to be parsed.
    pub labels: Arc<Labels>,
    /// The opt-in of the service.
    pub enabled: OptIn,
    /// True if the labels may change without a change of the manifest or the application, so that each
    /// cycle must read them again.
    pub dynamic: bool,
    /// Problems of the labels, with pointers that begin at the service: `/YARP.Routes.r1.Path`. An error
    /// keeps the service from serving in this form.
    pub problems: Problems,
}

/// The opt-in of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptIn {
    /// Opted in.
    Yes,
    /// Not opted in.
    #[default]
    No,
    /// Not known, because the labels cannot be read.
    Unknown,
}

/// Labels from the extension `YARP-preview`, `YARP` or `Yarp` of a service manifest.
///
/// The gateway sends extensions with the types of services; if it does not, the manifests are read. XML is
/// limited: 1 MiB, no DTD, no deep nesting.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ExtensionLabels {}

impl ExtensionLabels {
    /// Creates the provider of labels from extensions.
    pub fn new() -> Self {
        Self {}
    }
}

#[async_trait]
impl LabelsProvider for ExtensionLabels {
    async fn declared(
        &self,
        calls: &dyn ClusterCalls,
        application_type: &str,
        version: &str,
        types: &[ServiceType],
    ) -> Result<DeclaredTypes, CallError> {
        let mut declared = DeclaredTypes::new();
        let mut manifests: BTreeMap<&str, String> = BTreeMap::new();
        for service_type in types {
            let description = &service_type.service_type_description;
            let name = &description.service_type_name;
            let labels = match &description.extensions {
                Some(extensions) => from_extensions(extensions),
                None => {
                    let manifest = service_type.service_manifest_name.as_str();
                    if !manifests.contains_key(manifest) {
                        let text = calls
                            .service_manifest(application_type, version, manifest)
                            .await?;
                        manifests.insert(manifest, text);
                    }
                    xml::from_manifest(&manifests[manifest], name)
                }
            };
            if let Some(labels) = labels {
                declared
                    .entry(name.clone())
                    .or_insert_with(|| Arc::new(labels));
            }
        }
        Ok(declared)
    }

    async fn labels(
        &self,
        calls: &dyn ClusterCalls,
        service: LabelledBy<'_>,
    ) -> Result<ServiceLabels, CallError> {
        let mut problems = service.declared.problems.clone();
        let Some(declared) = &service.declared.labels else {
            return Ok(ServiceLabels {
                enabled: OptIn::Unknown,
                problems,
                ..ServiceLabels::default()
            });
        };
        let mut labels = service.parameters.replaced(declared, &mut problems);
        let dynamic = is_true(labels.get("YARP.EnableDynamicOverrides"));
        if dynamic {
            labels = overridden(calls, service.service_id, labels, &mut problems).await?;
        }
        let enabled = if is_true(labels.get("YARP.Enable")) {
            OptIn::Yes
        } else {
            OptIn::No
        };
        Ok(ServiceLabels {
            labels,
            enabled,
            dynamic,
            problems,
        })
    }
}

/// Returns the labels in the extension with the highest precedence. `None` if there is no such extension.
fn from_extensions(extensions: &[Extension]) -> Option<DeclaredLabels> {
    let present: Vec<_> = extensions.iter().map(|of| of.key.as_str()).collect();
    let (name, warning) = chosen(&present)?;
    let values = extensions.iter().filter(|extension| extension.key == name);
    if values
        .clone()
        .any(|extension| extension.value.trim().is_empty())
    {
        // Without labels the service would be removed.
        let message = format!(
            "the extension `{name}` is empty in the response, where a manifest always has an element"
        );
        let problem = Problem::error("", "invalid_labels_xml", message);
        return Some(DeclaredLabels::unreadable(problem));
    }
    let mut declared = xml::from_values(values.map(|extension| extension.value.as_str()));
    declared.problems.extend(warning);
    Some(declared)
}

/// The name of the extension that counts, and a warning if there are others.
fn chosen<'a>(present: &[&'a str]) -> Option<(&'a str, Option<Problem>)> {
    let mut names = EXTENSION_NAMES
        .iter()
        .filter_map(|name| present.iter().copied().find(|present| present == name));
    let first = names.next()?;
    let ignored: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    let problem = (!ignored.is_empty()).then(|| {
        let ignored = ignored.join(" and ");
        let message = format!(
            "the type has the extension `{first}` and also {ignored}, which is not read beside it"
        );
        Problem::warning("", "several_extensions", message)
            .with_suggestion(format!("move all labels into `{first}`"))
    });
    Some((first, problem))
}

/// Returns a key with the prefix in the form in which it is compared: `yarp.Enable` becomes `YARP.Enable`.
/// Keys without the prefix stay unchanged.
fn canonical(key: &str) -> Cow<'_, str> {
    match key.split_at_checked(PREFIX.len()) {
        Some((prefix, _)) if prefix == PREFIX => Cow::Borrowed(key),
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case(PREFIX) => {
            Cow::Owned(format!("{PREFIX}{rest}"))
        }
        _ => Cow::Borrowed(key),
    }
}

fn is_true(value: Option<&String>) -> bool {
    value.is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}
