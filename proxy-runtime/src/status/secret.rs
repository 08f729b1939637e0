//! Detection of secrets by name.

/// The placeholder for a secret.
pub(crate) const REDACTED: &str = "(redacted)";

/// True if a header, query parameter or metadata entry of this name may hold a secret.
///
/// Only the name is known. A value hidden without need can be looked up in the configuration file;
/// a value that was shown cannot be taken back.
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
    // As a part of a word `key` is harmless, as in `keyboard`.
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
