//! Manifests as XML.

use std::fmt::Write as _;

use super::entity::{ApplicationType, ServiceKind, ServiceManifest, ServiceType};
use super::error::{ErrorCode, FabricError};
use super::state::Cluster;

const NAMESPACE: &str = "http://schemas.microsoft.com/2011/01/fabric";
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

impl Cluster {
    /// The manifest of an application type.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`.
    pub fn application_manifest(&self, name: &str, version: &str) -> Result<String, FabricError> {
        let found = self.application_type(name, version)?;
        Ok(match &found.manifest {
            Some(text) => text.to_string(),
            None => application_manifest(found),
        })
    }

    /// A service manifest of an application type.
    ///
    /// # Errors
    ///
    /// `FABRIC_E_APPLICATION_TYPE_NOT_FOUND`, `FABRIC_E_SERVICE_MANIFEST_NOT_FOUND`.
    pub fn service_manifest(
        &self,
        name: &str,
        version: &str,
        manifest: &str,
    ) -> Result<String, FabricError> {
        let found = self
            .application_type(name, version)?
            .service_manifest(manifest);
        let text = found.map(|found| match &found.manifest {
            Some(text) => text.to_string(),
            None => service_manifest(found),
        });
        text.ok_or_else(|| {
            FabricError::new(
                ErrorCode::ServiceManifestNotFound,
                format!("'{name}' has no service manifest '{manifest}' in version '{version}'"),
            )
        })
    }

    /// Returns the manifest of the cluster: its nodes, and the main settings of hosting.
    pub fn cluster_manifest(&self) -> String {
        let mut xml = String::from(DECLARATION);
        let (name, version) = (Escaped(self.name()), Escaped(self.version()));
        line(
            &mut xml,
            0,
            format_args!(
                "<ClusterManifest xmlns=\"{NAMESPACE}\" Name=\"{name}\" Version=\"{version}\">"
            ),
        );
        line(&mut xml, 1, format_args!("<Infrastructure>"));
        line(&mut xml, 2, format_args!("<Linux IsScaleMin=\"true\">"));
        line(&mut xml, 3, format_args!("<NodeList>"));
        for entry in self.nodes.values() {
            let node = &entry.node;
            line(
                &mut xml,
                4,
                format_args!(
                    "<Node NodeName=\"{}\" IPAddressOrFQDN=\"{}\" NodeTypeRef=\"{}\" FaultDomain=\"{}\" UpgradeDomain=\"{}\" IsSeedNode=\"{}\" />",
                    Escaped(&node.name),
                    Escaped(&node.address),
                    Escaped(&node.node_type),
                    Escaped(&node.fault_domain),
                    Escaped(&node.upgrade_domain),
                    node.is_seed_node,
                ),
            );
        }
        line(&mut xml, 3, format_args!("</NodeList>"));
        line(&mut xml, 2, format_args!("</Linux>"));
        line(&mut xml, 1, format_args!("</Infrastructure>"));
        let hosting = &self.settings.hosting;
        line(&mut xml, 1, format_args!("<FabricSettings>"));
        line(&mut xml, 2, format_args!("<Section Name=\"Hosting\">"));
        for (name, span) in [
            (
                "ActivationRetryBackoffInterval",
                hosting.activation_retry_backoff_interval,
            ),
            (
                "ActivationMaxRetryInterval",
                hosting.activation_max_retry_interval,
            ),
            (
                "DeploymentRetryBackoffInterval",
                hosting.deployment_retry_backoff_interval,
            ),
            (
                "ServiceTypeDisableGraceInterval",
                hosting.service_type_disable_grace_interval,
            ),
            (
                "ServiceTypeRegistrationTimeout",
                hosting.service_type_registration_timeout,
            ),
            (
                "DeactivationScanInterval",
                hosting.deactivation_scan_interval,
            ),
            (
                "DeactivationGraceInterval",
                hosting.deactivation_grace_interval,
            ),
        ] {
            let seconds = span.as_millis() as f64 / 1000.0;
            line(
                &mut xml,
                3,
                format_args!("<Parameter Name=\"{name}\" Value=\"{seconds}\" />"),
            );
        }
        line(&mut xml, 2, format_args!("</Section>"));
        line(&mut xml, 1, format_args!("</FabricSettings>"));
        line(&mut xml, 0, format_args!("</ClusterManifest>"));
        xml
    }
}

fn application_manifest(described: &ApplicationType) -> String {
    let mut xml = String::from(DECLARATION);
    let (name, version) = (Escaped(&described.name), Escaped(&described.version));
    line(
        &mut xml,
        0,
        format_args!(
            "<ApplicationManifest xmlns=\"{NAMESPACE}\" ApplicationTypeName=\"{name}\" ApplicationTypeVersion=\"{version}\">"
        ),
    );
    if !described.default_parameters.is_empty() {
        line(&mut xml, 1, format_args!("<Parameters>"));
        for (name, value) in &described.default_parameters {
            let (name, value) = (Escaped(name), Escaped(value));
            line(
                &mut xml,
                2,
                format_args!("<Parameter Name=\"{name}\" DefaultValue=\"{value}\" />"),
            );
        }
        line(&mut xml, 1, format_args!("</Parameters>"));
    }
    for manifest in &described.service_manifests {
        let (name, version) = (Escaped(&manifest.name), Escaped(&manifest.version));
        line(&mut xml, 1, format_args!("<ServiceManifestImport>"));
        line(
            &mut xml,
            2,
            format_args!(
                "<ServiceManifestRef ServiceManifestName=\"{name}\" ServiceManifestVersion=\"{version}\" />"
            ),
        );
        line(&mut xml, 1, format_args!("</ServiceManifestImport>"));
    }
    line(&mut xml, 0, format_args!("</ApplicationManifest>"));
    xml
}

fn service_manifest(manifest: &ServiceManifest) -> String {
    let mut xml = String::from(DECLARATION);
    let (name, version) = (Escaped(&manifest.name), Escaped(&manifest.version));
    line(
        &mut xml,
        0,
        format_args!(
            "<ServiceManifest xmlns=\"{NAMESPACE}\" Name=\"{name}\" Version=\"{version}\">"
        ),
    );
    line(&mut xml, 1, format_args!("<ServiceTypes>"));
    for service_type in &manifest.service_types {
        write_service_type(&mut xml, service_type);
    }
    line(&mut xml, 1, format_args!("</ServiceTypes>"));
    for code in &manifest.code_packages {
        let (name, version) = (Escaped(&code.name), Escaped(&code.version));
        line(
            &mut xml,
            1,
            format_args!("<CodePackage Name=\"{name}\" Version=\"{version}\">"),
        );
        if let Some(setup) = &code.setup {
            let setup = Escaped(setup);
            line(
                &mut xml,
                2,
                format_args!(
                    "<SetupEntryPoint><ExeHost><Program>{setup}</Program></ExeHost></SetupEntryPoint>"
                ),
            );
        }
        let program = Escaped(&code.program);
        line(
            &mut xml,
            2,
            format_args!(
                "<EntryPoint><ExeHost><Program>{program}</Program></ExeHost></EntryPoint>"
            ),
        );
        line(&mut xml, 1, format_args!("</CodePackage>"));
    }
    if !manifest.endpoints.is_empty() {
        line(&mut xml, 1, format_args!("<Resources>"));
        line(&mut xml, 2, format_args!("<Endpoints>"));
        for endpoint in &manifest.endpoints {
            let (name, protocol) = (Escaped(&endpoint.name), Escaped(&endpoint.protocol));
            let port = endpoint
                .port
                .map(|port| format!(" Port=\"{port}\""))
                .unwrap_or_default();
            line(
                &mut xml,
                3,
                format_args!("<Endpoint Name=\"{name}\" Protocol=\"{protocol}\"{port} />"),
            );
        }
        line(&mut xml, 2, format_args!("</Endpoints>"));
        line(&mut xml, 1, format_args!("</Resources>"));
    }
    line(&mut xml, 0, format_args!("</ServiceManifest>"));
    xml
}

fn write_service_type(xml: &mut String, service_type: &ServiceType) {
    let name = Escaped(&service_type.name);
    let (element, attributes) = match service_type.kind {
        ServiceKind::Stateless => ("StatelessServiceType", String::new()),
        ServiceKind::Stateful => {
            let persisted = service_type.has_persisted_state;
            (
                "StatefulServiceType",
                format!(" HasPersistedState=\"{persisted}\""),
            )
        }
    };
    line(
        xml,
        2,
        format_args!("<{element} ServiceTypeName=\"{name}\"{attributes}>"),
    );
    if !service_type.placement_constraints.is_empty() {
        let constraints = Escaped(&service_type.placement_constraints);
        line(
            xml,
            3,
            format_args!("<PlacementConstraints>{constraints}</PlacementConstraints>"),
        );
    }
    if !service_type.extensions.is_empty() {
        line(xml, 3, format_args!("<Extensions>"));
        for extension in &service_type.extensions {
            let name = Escaped(&extension.name);
            line(xml, 4, format_args!("<Extension Name=\"{name}\">"));
            // The content is XML from the package, and is copied unchanged.
            for part in extension.xml.lines() {
                line(xml, 5, format_args!("{part}"));
            }
            line(xml, 4, format_args!("</Extension>"));
        }
        line(xml, 3, format_args!("</Extensions>"));
    }
    line(xml, 2, format_args!("</{element}>"));
}

fn line(xml: &mut String, depth: usize, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(xml, "{:indent$}{text}", "", indent = depth * 2);
}

/// Returns the labels as an extension: an element `Labels` with one `Label` for each.
pub(crate) fn labels_xml<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut xml =
        String::from("<Labels xmlns=\"http://schemas.microsoft.com/2015/03/fabact-no-schema\">\n");
    for (key, value) in labels {
        let _ = writeln!(
            xml,
            "  <Label Key=\"{}\">{}</Label>",
            Escaped(key),
            Escaped(value)
        );
    }
    xml.push_str("</Labels>");
    xml
}

/// A text escaped for an element or an attribute. Characters that XML cannot represent become U+FFFD.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // Parsers replace unescaped line breaks and tabs in attributes by spaces.
                '\n' => f.write_str("&#10;")?,
                '\r' => f.write_str("&#13;")?,
                '\t' => f.write_str("&#9;")?,
                // XML has no form for these characters, not even an escaped one.
                '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_an_extension() {
        let xml = labels_xml([
            ("YARP.Enable", "true"),
            ("YARP.Routes.r.Path", "/a?x=\"<&>\""),
        ]);
        assert_eq!(
            xml,
            "<Labels xmlns=\"http://schemas.microsoft.com/2015/03/fabact-no-schema\">\n  \
             <Label Key=\"YARP.Enable\">true</Label>\n  \
             <Label Key=\"YARP.Routes.r.Path\">/a?x=&quot;&lt;&amp;&gt;&quot;</Label>\n</Labels>"
        );
    }

    #[test]
    fn what_xml_cannot_say_is_replaced() {
        assert_eq!(
            Escaped("a\0b\nc\u{ffff}").to_string(),
            "a\u{fffd}b&#10;c\u{fffd}"
        );
    }
}
