//! The table of labels.

use serde_json::json;

use super::*;

/// Every setting of the configuration has a label: what the labels of the whole table make is the whole of the model.
#[test]
fn every_setting_has_a_label() {
    let (config, problems) = served(&[
        ("proxy.cluster.id", "c"),
        ("proxy.cluster.loadBalancingPolicy", "RoundRobin"),
        ("proxy.cluster.sessionAffinity.enabled", "true"),
        ("proxy.cluster.sessionAffinity.policy", "Cookie"),
        (
            "proxy.cluster.sessionAffinity.failurePolicy",
            "Return503Error",
        ),
        ("proxy.cluster.sessionAffinity.affinityKeyName", "key"),
        ("proxy.cluster.sessionAffinity.cookie.path", "/p"),
        ("proxy.cluster.sessionAffinity.cookie.domain", "d.example"),
        ("proxy.cluster.sessionAffinity.cookie.httpOnly", "false"),
        (
            "proxy.cluster.sessionAffinity.cookie.securePolicy",
            "Always",
        ),
        ("proxy.cluster.sessionAffinity.cookie.sameSite", "Lax"),
        (
            "proxy.cluster.sessionAffinity.cookie.expiration",
            "1.00:00:00",
        ),
        ("proxy.cluster.sessionAffinity.cookie.maxAge", "2h"),
        ("proxy.cluster.sessionAffinity.cookie.isEssential", "true"),
        (
            "proxy.cluster.healthCheck.availableDestinationsPolicy",
            "HealthyAndUnknown",
        ),
        ("proxy.cluster.healthCheck.active.enabled", "true"),
        ("proxy.cluster.healthCheck.active.interval", "00:00:10"),
        ("proxy.cluster.healthCheck.active.timeout", "2s"),
        (
            "proxy.cluster.healthCheck.active.policy",
            "ConsecutiveFailures",
        ),
        ("proxy.cluster.healthCheck.active.path", "/health"),
        ("proxy.cluster.healthCheck.active.query", "?full"),
        ("proxy.cluster.healthCheck.passive.enabled", "true"),
        (
            "proxy.cluster.healthCheck.passive.policy",
            "TransportFailureRate",
        ),
        (
            "proxy.cluster.healthCheck.passive.reactivationPeriod",
            "30s",
        ),
        ("proxy.cluster.httpClient.sslProtocols", "Tls12, Tls13"),
        (
            "proxy.cluster.httpClient.dangerousAcceptAnyServerCertificate",
            "true",
        ),
        ("proxy.cluster.httpClient.maxConnectionsPerServer", "+7"),
        (
            "proxy.cluster.httpClient.enableMultipleHttp2Connections",
            "false",
        ),
        ("proxy.cluster.httpClient.requestHeaderEncoding", "utf-8"),
        ("proxy.cluster.httpClient.responseHeaderEncoding", "latin1"),
        (
            "proxy.cluster.httpClient.webProxy.address",
            "http://proxy:3128",
        ),
        ("proxy.cluster.httpClient.webProxy.bypassOnLocal", "true"),
        (
            "proxy.cluster.httpClient.webProxy.useDefaultCredentials",
            "false",
        ),
        ("proxy.cluster.httpRequest.activityTimeout", "00:01:40"),
        ("proxy.cluster.httpRequest.version", "2"),
        (
            "proxy.cluster.httpRequest.versionPolicy",
            "requestversionexact",
        ),
        ("proxy.cluster.httpRequest.allowResponseBuffering", "true"),
        ("proxy.cluster.metadata.a.b", "1"),
        ("proxy.destinations.weight", "3"),
        ("proxy.destinations.priority", "1"),
        ("proxy.destinations.zone", "z"),
        ("proxy.destinations.host", "h.example"),
        ("proxy.destinations.metadata.k", "v"),
        ("proxy.routes.r.path", "/a"),
        ("proxy.routes.r.hosts", "a.example."),
        ("proxy.routes.r.methods", "GET,POST"),
        ("proxy.routes.r.order", "-5"),
        ("proxy.routes.r.maxRequestBodySize", "-1"),
        ("proxy.routes.r.strictPaths", "TRUE"),
        ("proxy.routes.r.timeoutIncludesBody", "true"),
        ("proxy.routes.r.authorizationPolicy", "Default"),
        ("proxy.routes.r.corsPolicy", "Disable"),
        ("proxy.routes.r.rateLimiterPolicy", "Disable"),
        ("proxy.routes.r.outputCachePolicy", "o"),
        ("proxy.routes.r.timeoutPolicy", "t"),
        ("proxy.routes.r.timeout", "5s"),
        ("proxy.routes.r.metadata.x", "y"),
        ("proxy.routes.r.filters", "first, second"),
        ("proxy.routes.r.layers", "outer,inner"),
        ("proxy.routes.r.redirect.scheme", "https"),
        ("proxy.routes.r.redirect.host", "b.example"),
        ("proxy.routes.r.redirect.path", "/b/{**rest}"),
        ("proxy.routes.r.redirect.status", "308"),
        ("proxy.routes.r.respond.status", "410"),
        ("proxy.routes.r.respond.body", "gone, it is"),
        ("proxy.routes.r.respond.headers.X-Reason", "moved"),
        ("proxy.routes.r.clusterId", "other"),
        ("proxy.routes.r.headers.[0].name", "x-a"),
        ("proxy.routes.r.headers.[0].values", "1,2"),
        ("proxy.routes.r.headers.[0].mode", "HeaderPrefix"),
        ("proxy.routes.r.headers.[0].isCaseSensitive", "true"),
        ("proxy.routes.r.queryParameters[0].name", "q"),
        ("proxy.routes.r.queryParameters[0].values", "1"),
        ("proxy.routes.r.queryParameters[0].mode", "Contains"),
        ("proxy.routes.r.queryParameters[0].isCaseSensitive", "true"),
        ("proxy.routes.r.weightedClusters.[0].clusterId", "a"),
        ("proxy.routes.r.weightedClusters.[0].weight", "9"),
        ("proxy.routes.r.partitionedClusters.key.header", "x-key"),
        ("proxy.routes.r.partitionedClusters.key.queryParameter", "k"),
        ("proxy.routes.r.partitionedClusters.key.routeValue", "v"),
        ("proxy.routes.r.partitionedClusters.hash", "fnv1a64"),
        (
            "proxy.routes.r.partitionedClusters.partitions.[0].clusterId",
            "a",
        ),
        (
            "proxy.routes.r.partitionedClusters.partitions.[0].lowKey",
            "-9223372036854775808",
        ),
        (
            "proxy.routes.r.partitionedClusters.partitions.[0].highKey",
            "9223372036854775807",
        ),
        (
            "proxy.routes.r.partitionedClusters.partitions.[1].clusterId",
            "b",
        ),
        (
            "proxy.routes.r.partitionedClusters.partitions.[1].name",
            "eu",
        ),
        ("proxy.routes.r.transforms.[0].PathPrefix", "/x"),
    ]);
    assert_eq!(problems, Vec::<String>::new());

    let mut destination = json!({
        "Address": "http://10.0.0.1:80", "Weight": 3, "Priority": 1, "Zone": "z", "Host": "h.example",
        "Metadata": { "k": "v" },
    });
    let first = destination.clone();
    destination["Address"] = json!("http://10.0.0.2:80");
    let expected = json!({
        "Routes": { "c:r": {
            "ClusterId": "other",
            "WeightedClusters": [{ "ClusterId": "a", "Weight": 9 }],
            "PartitionedClusters": {
                "Key": { "Header": "x-key", "QueryParameter": "k", "RouteValue": "v" },
                "Hash": "Fnv1a64",
                "Partitions": [
                    { "ClusterId": "a", "LowKey": i64::MIN, "HighKey": i64::MAX },
                    { "ClusterId": "b", "Name": "eu" },
                ],
            },
            "Redirect": { "Scheme": "https", "Host": "b.example", "Path": "/b/{**rest}", "Status": 308 },
            "Respond": { "Status": 410, "Body": "gone, it is", "Headers": { "X-Reason": "moved" } },
            "Match": {
                "Path": "/a", "Hosts": ["a.example"], "Methods": ["GET", "POST"],
                "Headers": [{ "Name": "x-a", "Values": ["1", "2"], "Mode": "HeaderPrefix", "IsCaseSensitive": true }],
                "QueryParameters": [{ "Name": "q", "Values": ["1"], "Mode": "Contains", "IsCaseSensitive": true }],
            },
            "Order": -5, "MaxRequestBodySize": -1, "StrictPaths": true,
            "AuthorizationPolicy": "Default", "CorsPolicy": "Disable", "RateLimiterPolicy": "Disable",
            "OutputCachePolicy": "o", "TimeoutPolicy": "t", "Timeout": "00:00:05", "TimeoutIncludesBody": true,
            "Metadata": { "x": "y" },
            "Transforms": [{ "PathPrefix": "/x" }],
            "Filters": ["first", "second"], "Layers": ["outer", "inner"],
        } },
        "Clusters": { "c": {
            "LoadBalancingPolicy": "RoundRobin",
            "SessionAffinity": {
                "Enabled": true, "Policy": "Cookie", "FailurePolicy": "Return503Error", "AffinityKeyName": "key",
                "Cookie": {
                    "Path": "/p", "Domain": "d.example", "HttpOnly": false, "SecurePolicy": "Always",
                    "SameSite": "Lax", "Expiration": "1.00:00:00", "MaxAge": "02:00:00", "IsEssential": true,
                },
            },
            "HealthCheck": {
                "AvailableDestinationsPolicy": "HealthyAndUnknown",
                "Active": {
                    "Enabled": true, "Interval": "00:00:10", "Timeout": "00:00:02",
                    "Policy": "ConsecutiveFailures", "Path": "/health", "Query": "?full",
                },
                "Passive": {
                    "Enabled": true, "Policy": "TransportFailureRate", "ReactivationPeriod": "00:00:30",
                },
            },
            "HttpClient": {
                "SslProtocols": ["Tls12", "Tls13"], "DangerousAcceptAnyServerCertificate": true,
                "MaxConnectionsPerServer": 7, "EnableMultipleHttp2Connections": false,
                "RequestHeaderEncoding": "utf-8", "ResponseHeaderEncoding": "latin1",
                "WebProxy": {
                    "Address": "http://proxy:3128", "BypassOnLocal": true, "UseDefaultCredentials": false,
                },
            },
            "HttpRequest": {
                "ActivityTimeout": "00:01:40", "Version": "2", "VersionPolicy": "RequestVersionExact",
                "AllowResponseBuffering": true,
            },
            "Destinations": { "d1": first, "d2": destination },
            "Metadata": { "a.b": "1" },
        } },
    });
    assert_eq!(serde_json::to_value(&config).unwrap(), expected);
}
