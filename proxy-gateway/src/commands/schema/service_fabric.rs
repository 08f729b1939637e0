//! The section `ServiceFabricDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_servicefabric::options::Section` reads.
pub(super) fn section() -> Value {
    let security = object(
        "Certificates, tokens and trust.",
        &json!({
            "ClientCertificateFile": text("PEM file with the certificate presented to the cluster, and with its key unless `ClientKeyFile` is set."),
            "ClientKeyFile": text("PEM file with the key of that certificate."),
            "TokenFile": text("File with a bearer token; read again when it changes."),
            "ServerCaFile": text("PEM file with the authorities that vouch for the cluster. Unset: those that the system trusts."),
            "ServerThumbprints": texts("SHA-1 thumbprints of the certificates that the cluster may have, whatever their names."),
            "ServerNames": texts("Names that the cluster's certificate may have, whatever the host."),
            "ServerIssuerThumbprints": texts("With `ServerNames`: thumbprints of the certificate's allowed issuers."),
            "DangerousAcceptAnyServerCertificate": switch("Whether any server is trusted. For trials only.", false),
        }),
    );
    let key = object(
        "The place of the partition key in requests, unless labels set it. Exactly one of the first three.",
        &json!({
            "Header": text("Name of a header."),
            "QueryParameter": text("Name of a query parameter."),
            "RouteValue": text("Name of a parameter of the route's path."),
            "Hash": word("The conversion of the key to a number.", &["None", "Fnv1a64"]),
        }),
    );
    let read_header = object(
        "The header that marks a read under `RoleRouting` = `Header`, unless labels set it.",
        &json!({
            "Name": text("Name of the header."),
            "Values": texts("The values, one of which must match. Unset: the header must be present."),
            "Mode": json!({
                "enum": ["ExactHeader", "HeaderPrefix", "Exists", "Contains", "NotContains", "NotExists"],
                "description": "The comparison. Unset: `ExactHeader` with `Values`, `Exists` without.",
            }),
            "IsCaseSensitive": switch("Whether case matters when values are compared.", false),
        }),
    );
    let confirm_removal = object(
        "Confirms a sudden removal of many services: they are removed only if they stay missing.",
        &json!({
            "Share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1, "description": "The share of the services that must be missing at once." },
            "Settle": text("The time for which they must be missing. Unset: 10s."),
        }),
    );
    object(
        "Discovers the services of a Service Fabric cluster.",
        &json!({
            "Gateways": texts("URLs of REST gateways of the cluster. Unset: `http://localhost:19080`."),
            "CallTimeout": text("Time limit of one call with all its pages and attempts. Unset: 60s."),
            "Security": security,
            "DiscoveryPeriod": text("The pause between two polls. Unset: 30s."),
            "FastPeriod": text("The pause between two polls while something is changing. Unset: 5s."),
            "FullRefreshPeriod": text("The interval of complete polls. Unset: 5m."),
            "CacheDuration": text("The time for which an earlier response may replace that of a failed call. Unset: 30m."),
            "UnreadGrace": text("The time for which the addresses of an unreadable partition stay in use. Unset: 30m."),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before the cluster has responded.", false),
            "DiscoverInsecureHttpDestinations": switch("Whether endpoints without TLS are destinations.", false),
            "ReportServicesHealth": switch("Whether the health of services is reported to the cluster.", true),
            "ReportReplicasHealth": switch("Whether the health of each replica is reported, too.", false),
            "AlwaysSendImmediateHealthReports": switch("Whether reports of good health are sent at once, as those of bad health are.", false),
            "HealthReportSource": json!({ "type": "string", "default": "YARP", "description": "The source of health reports. Proxies that serve the same services differently need different names." }),
            "EndpointSource": word("The calls that return the endpoints of replicas.", &["Replicas", "ReplicasAndResolve"]),
            "ChangeProbe": switch("Whether one call shows which stateless services have not changed.", true),
            "MaxConcurrentCalls": json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 8, "description": "Maximum number of concurrent calls." }),
            "StatefulReplicaSelectionMode": word("The replicas of stateful services that serve, unless labels set it.", &["All", "PrimaryOnly", "SecondaryOnly"]),
            "PartitionMode": word("The mapping of partitions to clusters, unless labels set it.", &["Merge", "PerPartition", "Key"]),
            "PartitionKey": key,
            "ListenerMode": word("The mapping of replicas with several endpoints, unless labels set it.", &["One", "PerListener"]),
            "RoleRouting": word("Whether secondaries serve reads, unless labels set it.", &["Off", "Methods", "Header"]),
            "ReadHeader": read_header,
            "DefaultRoute": switch("Whether a service without routes is served under its own name.", false),
            "PathPrefix": switch("Whether the paths of routes begin with the service's name.", false),
            "UnknownLabels": word("The severity of an unknown label.", &["Warning", "Error"]),
            "Persist": text("File that keeps the last known good configuration, for a start while the cluster is unavailable."),
            "ConfirmRemoval": confirm_removal,
        }),
    )
}
