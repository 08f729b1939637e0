//! The section `ServiceFabricDiscovery`.

use serde_json::{Value, json};

use super::{object, switch, text, texts, word};

/// Returns the schema of the section that `discovery_servicefabric::options::Section` reads.
pub(super) fn section() -> Value {
    let security = object(
        "Who trusts whom by what.",
        &json!({
            "ClientCertificateFile": text("PEM file with the certificate that is shown to the cluster, and with its key unless that has a file of its own."),
            "ClientKeyFile": text("PEM file with the key of that certificate."),
            "TokenFile": text("File with a bearer token; read again when it changes."),
            "ServerCaFile": text("PEM file with the authorities that vouch for the cluster. Unset: those that the system trusts."),
            "ServerThumbprints": texts("SHA-1 thumbprints of the certificates that the cluster may have, whatever their names."),
            "ServerNames": texts("Names that the cluster's certificate may have, whatever the host."),
            "ServerIssuerThumbprints": texts("With `ServerNames`: thumbprints of those who must have issued the certificate."),
            "DangerousAcceptAnyServerCertificate": switch("Whether anybody is taken for the cluster.", false),
        }),
    );
    let key = object(
        "Where requests have the key of a partition, where labels do not say it. Exactly one of the first three.",
        &json!({
            "Header": text("Name of a header."),
            "QueryParameter": text("Name of a query parameter."),
            "RouteValue": text("Name of a parameter of the route's path."),
            "Hash": word("How the key becomes a number.", &["None", "Fnv1a64"]),
        }),
    );
    let read_header = object(
        "What tells a read under `RoleRouting` = `Header`, where labels do not say it.",
        &json!({
            "Name": text("Name of the header."),
            "Values": texts("What it is compared with; any one is enough. Unset: the header only has to be there."),
            "Mode": json!({
                "enum": ["ExactHeader", "HeaderPrefix", "Exists", "Contains", "NotContains", "NotExists"],
                "description": "How it is compared. Unset: `ExactHeader` with `Values`, `Exists` without.",
            }),
            "IsCaseSensitive": switch("Whether case matters when values are compared.", false),
        }),
    );
    let confirm_removal = object(
        "When services that vanish all at once must be missing for a while before they are removed.",
        &json!({
            "Share": { "type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1, "description": "What share of the services must be missing at once." },
            "Settle": text("How long they must be missing. Unset: 10s."),
        }),
    );
    object(
        "Discovers the services of a Service Fabric cluster.",
        &json!({
            "Gateways": texts("URLs of REST gateways of the cluster. Unset: `http://localhost:19080`."),
            "CallTimeout": text("How long one call may take with all its pages and attempts. Unset: 60s."),
            "Security": security,
            "DiscoveryPeriod": text("From the end of a round to the start of the next. Unset: 30s."),
            "FastPeriod": text("The same while something is changing. Unset: 5s."),
            "FullRefreshPeriod": text("How often everything is read again. Unset: 5m."),
            "CacheDuration": text("How long an answer may stand in for a call that fails. Unset: 30m."),
            "AllowStartBeforeDiscovery": switch("Whether the proxy is ready before the cluster has answered.", false),
            "DiscoverInsecureHttpDestinations": switch("Whether endpoints without TLS are destinations.", false),
            "ReportServicesHealth": switch("Whether the cluster is told how its services fare.", true),
            "ReportReplicasHealth": switch("Whether it is told of each replica, too.", false),
            "AlwaysSendImmediateHealthReports": switch("Whether good news is sent at once, as bad news is.", false),
            "HealthReportSource": json!({ "type": "string", "default": "YARP", "description": "Who reports health. Proxies that serve the same services differently need different names." }),
            "EndpointSource": word("Where the endpoints of replicas come from.", &["Replicas", "ReplicasAndResolve"]),
            "ChangeProbe": switch("Whether one call shows which stateless services have not changed.", true),
            "MaxConcurrentCalls": json!({ "type": "integer", "minimum": 1, "maximum": 1000, "default": 8, "description": "Calls under way at the same time." }),
            "StatefulReplicaSelectionMode": word("Which replicas of stateful services serve, where labels do not say it.", &["All", "PrimaryOnly", "SecondaryOnly"]),
            "PartitionMode": word("What becomes of partitions, where labels do not say it.", &["Merge", "PerPartition", "Key"]),
            "PartitionKey": key,
            "ListenerMode": word("What becomes of replicas with several endpoints, where labels do not say it.", &["One", "PerListener"]),
            "RoleRouting": word("Whether reads go to secondaries, where labels do not say it.", &["Off", "Methods", "Header"]),
            "ReadHeader": read_header,
            "DefaultRoute": switch("Whether a service without routes is served under its own name.", false),
            "PathPrefix": switch("Whether the paths of routes begin with the service's name.", false),
            "UnknownLabels": word("How bad a label is that means nothing.", &["Warning", "Error"]),
            "Persist": text("File that keeps the last known good configuration, for a start while the cluster is away."),
            "ConfirmRemoval": confirm_removal,
        }),
    )
}
