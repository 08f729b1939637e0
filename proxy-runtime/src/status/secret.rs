//! What may be a secret, by its name.

/// What stands in place of a secret.
pub(crate) const REDACTED: &str = "(redacted)";

/// Whether what goes by this name may be a secret: a header, a query parameter, or metadata.
///
/// Names are all there is to tell by. One that is hidden for nothing costs a look into the configuration's file; one that is
/// shown cannot be taken back.
pub(crate) fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let sounds = [
        "auth",
        "cookie",
        "credential",
        "passphrase",
        "passw",
        "secret",
        "session",
        "signature",
        "token",
        "apikey",
        "accesskey",
    ];
    let is_key = name == "key" || name.ends_with("-key") || name.ends_with("_key");
    is_key || name == "sig" || sounds.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "X-Auth",
            "Cookie",
            "X-Api-Key",
            "Ocp-Apim-Subscription-Key",
            "x-functions-key",
            "api_key",
            "apiKey",
            "access_token",
            "X-Signature",
            "sig",
            "key",
            "DB_PASSWORD",
        ] {
            assert!(sounds_secret(name), "{name}");
        }
        for name in [
            "X-Canary",
            "X-Version",
            "Host",
            "team",
            "keyboard",
            "monkey",
            "sigma",
            "Accept",
        ] {
            assert!(!sounds_secret(name), "{name}");
        }
    }
}
