//! The JSON Schema of the section.

use serde_json::{Value, json};

/// Returns the JSON Schema (draft 2020-12) of the section `Policies`, for editors.
pub fn schema() -> Value {
    object(
        "What routes choose by name: who may use them, how often, from where, for how long.",
        &json!({
            "Authorization": by_name("Policies for `AuthorizationPolicy`. `Default` is what routes mean by `Default`; `Fallback` is the policy of routes that name none.", &authorization()),
            "Cors": by_name("Policies for `CorsPolicy`. `Default` is what routes mean by `Default`.", &cors()),
            "RateLimiter": by_name("Policies for `RateLimiterPolicy`. `Global` counts the requests of all routes but those with `Disable`.", &rate_limiter()),
            "Timeout": by_name("Policies for `TimeoutPolicy`.", &object(
                "One timeout policy.",
                &json!({ "Timeout": text("The longest that a request may take, from its head to the head of the response.") }),
            )),
        }),
    )
}

fn authorization() -> Value {
    let networks = object(
        "The networks of clients. A client whose address is unknown may not come.",
        &json!({
            "Allow": texts("Networks or addresses that may come. Unset: all that are not denied."),
            "Deny": texts("Networks or addresses that may not come, also if they are allowed."),
        }),
    );
    let basic = object(
        "Names and passwords (RFC 7617).",
        &json!({
            "Realm": text("What browsers show. Unset: `proxy`."),
            "Users": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Hashes of passwords by name, of bcrypt and with a cost of at most 14: what `htpasswd -nB NAME` prints.",
            },
        }),
    );
    object(
        "One authorization policy. A request must meet all parts.",
        &json!({
            "Networks": networks,
            "ClientCertificate": certificate(),
            "Basic": basic,
            "Jwt": jwt(),
            "ForwardAuth": forward(),
            "ClaimHeaders": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Headers for the destination by name, each with the claim that it gets. The client's own are removed. `Basic` has the claim `name`, `Jwt` those of the token, `ClientCertificate` alone `subject` and `fingerprint`.",
            },
        }),
    )
}

fn certificate() -> Value {
    object(
        "Certificates that clients have presented to the listener, which has verified them. A certificate must meet each list.",
        &json!({
            "Subjects": texts("Subjects as lists of attributes: `CN=orders,O=Example`. The certificate has these, and no others of the same types. Unset: any."),
            "Names": texts("Alternative names: `orders.example`, `*.orders.example`, `spiffe://example/orders`, `spiffe://example/*`, `ann@example.com` or an address. Unset: any."),
            "Fingerprints": texts("SHA-256 of the certificates in hexadecimal digits, with colons or without. Unset: any."),
        }),
    )
}

fn jwt() -> Value {
    object(
        "Bearer tokens: JSON Web Tokens of an issuer (RFC 7519), signed with RSA, ECDSA or Ed25519.",
        &json!({
            "Issuer": text("The `iss` of the tokens."),
            "Audiences": texts("The `aud` that a token must have one of."),
            "JwksUri": text("The URL of the issuer's keys (RFC 7517)."),
            "RequiredClaims": {
                "type": "object",
                "additionalProperties": { "type": "array", "minItems": 1, "items": { "type": "string" } },
                "description": "Values by claim. Each claim must have one of its values; `scope` is a list.",
            },
            "ClockSkew": text("The difference of clocks that is tolerated, at most 10 minutes. Unset: 30s."),
            "RefreshInterval": text("The age at which the keys are fetched again. Unset: 10m."),
            "Realm": text("What programs are told. Unset: `proxy`."),
        }),
    )
}

fn forward() -> Value {
    object(
        "Another service decides, by the head of each request.",
        &json!({
            "Address": text("The URL that is asked with GET. 2xx lets pass; 3xx and 4xx go to the client; all else is 503."),
            "RequestHeaders": texts("Headers of the request that the service gets. Unset: all."),
            "ResponseHeaders": texts("Headers of the service's response that the destination gets. The client's own are removed."),
            "TrustForwardHeader": switch("Whether the client's `X-Forwarded-*` are passed to the service as they are."),
            "Timeout": text("The longest that the decision may take, at most 1 minute. Unset: 5s."),
        }),
    )
}

fn cors() -> Value {
    object(
        "One CORS policy, in the words of ASP.NET.",
        &json!({
            "AllowAnyOrigin": switch("Whether scripts of every origin may read responses. Excludes `Origins` and `AllowCredentials`."),
            "Origins": texts("Origins whose scripts may read responses: `https://example.com`. `[\"*\"]` is any."),
            "AllowWildcardSubdomains": switch("Whether `https://*.example.com` in `Origins` stands for all subdomains."),
            "AllowAnyMethod": switch("Whether every method is allowed. Excludes `Methods`."),
            "Methods": texts("Methods that are allowed beside GET, HEAD and POST. `[\"*\"]` is any."),
            "AllowAnyHeader": switch("Whether every header is allowed. Excludes `Headers`."),
            "Headers": texts("Request headers that are allowed beside the simple ones. `[\"*\"]` is any."),
            "AllowCredentials": switch("Whether scripts may send cookies and credentials."),
            "ExposedHeaders": texts("Response headers that scripts may read beside the simple ones."),
            "PreflightMaxAge": text("How long browsers may keep the answer to a preflight request. Unset: as browsers do, 5s."),
        }),
    )
}

fn rate_limiter() -> Value {
    const MOST: u32 = 1_000_000_000;
    let partition = object(
        "What divides requests, so that each part has a limit of its own. Unset: all requests have one limit together.",
        &json!({
            "By": word("`Address`: the client's, of IPv6 the network of 64 bits; `Header`: its first value; `RouteValue`: a parameter of the path; `Claim`: of an authorization policy.", &["None", "Address", "Header", "RouteValue", "Claim"]),
            "Name": text("The name of the header, the route value or the claim."),
        }),
    );
    let shared = object(
        "The Redis at which several gateways count together. While it is away, each grants its share of the limit. Unset: each gateway counts for itself.",
        &json!({
            "Address": text("The address: `redis://10.0.0.9:6379`, or `rediss://` for TLS."),
            "CaFile": text("A PEM file with the authorities of the certificate, for `rediss://`."),
            "Username": text("The user of Redis. Unset: the one without a name."),
            "Password": text("The password. Unset: none."),
            "Database": whole("The number of the database. Unset: 0.", 0, 65_535),
            "Timeout": text("The longest that a request waits for a decision, at most 1s. Unset: 50ms."),
            "Replicas": whole("The number of gateways, for the share of each. Unset: 1.", 1, 10_000),
            "KeyPrefix": text("What the keys at Redis begin with. Unset: `proxy`."),
        }),
    );
    object(
        "One rate limiter, in the words of .NET.",
        &json!({
            "Kind": { "enum": ["FixedWindow", "SlidingWindow", "TokenBucket", "Concurrency"], "description": "The way of counting." },
            "PermitLimit": whole("Requests in a window, or for `Concurrency` at a time.", 1, MOST),
            "Window": text("The length of a window."),
            "SegmentsPerWindow": whole("Parts of a sliding window.", 1, 1_000),
            "TokenLimit": whole("The most tokens of a bucket; a request takes one.", 1, MOST),
            "TokensPerPeriod": whole("Tokens that are added each period.", 1, MOST),
            "ReplenishmentPeriod": text("The period in which tokens are added."),
            "QueueLimit": whole("Requests that may wait for a permit, in each part. Unset: 0.", 0, 100_000),
            "QueueProcessingOrder": word("Which of those that wait is next.", &["OldestFirst", "NewestFirst"]),
            "Partition": partition,
            "MaxPartitions": whole("Parts that are counted apart; further ones have one limit together. Unset: 10000.", 1, 1_000_000),
            "RejectionStatusCode": whole("The status of rejected requests. Unset: 429.", 400, 599),
            "Shared": shared,
            "RateLimitFields": { "type": "boolean", "default": true, "description": "Whether responses have `RateLimit` and `RateLimit-Policy`." },
        }),
    )
}

fn by_name(description: &str, policy: &Value) -> Value {
    json!({ "type": "object", "additionalProperties": policy, "description": description })
}

fn object(description: &str, properties: &Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

fn switch(description: &str) -> Value {
    json!({ "type": "boolean", "default": false, "description": description })
}

/// Returns the schema of a text that is one of these words. Default: the first.
fn word(description: &str, words: &[&str]) -> Value {
    json!({ "enum": words, "default": words[0], "description": description })
}

fn whole(description: &str, least: u32, most: u32) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most, "description": description })
}
