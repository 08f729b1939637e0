//! The kinds of keys that issuers sign with. Tokens are made here byte by byte, with another implementation of the
//! signatures' format than the one that verifies them.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384, RsaEncoding,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::get_current_timestamp;
use serde_json::{Value, json};

use super::around::send;
use super::remote::{Script, Scripted};

enum Key {
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
    P384(EcdsaKeyPair),
}

fn base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Key {
    /// The public half (RFC 7517, RFC 7518 section 6, RFC 8037 section 2).
    fn jwk(&self) -> Value {
        match self {
            Self::Rsa(key) => {
                let public = key.public_key();
                let modulus = public.modulus().big_endian_without_leading_zero();
                let exponent = public.exponent().big_endian_without_leading_zero();
                json!({ "kty": "RSA", "kid": "k", "n": base64url(modulus), "e": base64url(exponent) })
            }
            Self::Ed25519(key) => {
                let public = key.public_key().as_ref();
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64url(public) })
            }
            Self::P384(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(48);
                json!({ "kty": "EC", "crv": "P-384", "kid": "k", "x": base64url(x), "y": base64url(y) })
            }
        }
    }

    fn sign(&self, algorithm: &str, text: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    _ => &RSA_PSS_SHA384,
                };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(encoding, &random, text, &mut signature).unwrap();
                signature
            }
            Self::Ed25519(key) => key.sign(text).as_ref().to_vec(),
            Self::P384(key) => key.sign(&random, text).unwrap().as_ref().to_vec(),
        }
    }

    fn token(&self, algorithm: &str) -> String {
        let header = json!({ "alg": algorithm, "kid": "k", "typ": "JWT" });
        let claims = json!({
            "iss": "https://login.example/", "aud": "orders", "sub": "ann",
            "exp": get_current_timestamp() + 600,
        });
        let [header, claims] = [header, claims].map(|part| base64url(part.to_string().as_bytes()));
        let text = format!("{header}.{claims}");
        let signature = base64url(&self.sign(algorithm, text.as_bytes()));
        format!("Authorization: Bearer {text}.{signature}")
    }
}

const POLICY: &str = r#""Authorization":{"token":{"Jwt":{
    "Issuer":"https://login.example/","Audiences":["orders"],"JwksUri":"https://login.example/keys"}}}"#;
const ROUTE: &str = r#""r":{"ClusterId":"c","Match":{"Path":"/r"},"AuthorizationPolicy":"token"}"#;

/// 503 is the answer of a cluster without destinations: the request has passed.
#[tokio::test(start_paused = true)]
async fn each_kind_of_key_verifies_its_own_algorithms() {
    let random = SystemRandom::new();
    let rsa = Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let ed25519 = Key::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap());
    let algorithm = &ECDSA_P384_SHA384_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let p384 = Key::P384(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).unwrap());
    for (key, of_key, algorithm, status) in [
        (&rsa, None, "RS256", 503),
        (&rsa, None, "RS512", 503),
        (&rsa, None, "PS256", 503),
        (&rsa, None, "PS384", 503),
        (&rsa, Some("RS256"), "RS256", 503),
        // The key says what it is for.
        (&rsa, Some("RS256"), "PS256", 401),
        (&rsa, None, "ES256", 401),
        (&rsa, None, "HS256", 401),
        (&ed25519, None, "EdDSA", 503),
        (&ed25519, Some("EdDSA"), "EdDSA", 503),
        (&ed25519, None, "RS256", 401),
        (&p384, None, "ES384", 503),
        (&p384, None, "ES256", 401),
        (&p384, None, "EdDSA", 401),
    ] {
        let mut jwk = key.jwk();
        if let Some(of_key) = of_key {
            jwk["alg"] = of_key.into();
        }
        let keys = json!({ "keys": [jwk] }).to_string();
        let script = Script::new([Scripted::Answer(200, Vec::new(), keys)]);
        let mut service = script.service(POLICY, ROUTE);
        let token = key.token(algorithm);
        let response = send(&mut service, "GET /r", &[&token]).await;
        assert_eq!(response.status(), status, "{algorithm} for {of_key:?}");
        // One letter of the claims or of the signature changes everything.
        let at = token.rfind('.').unwrap();
        for at in [at - 5, at + 5] {
            let mut forged = token.clone();
            let other = if forged.as_bytes()[at] == b'A' {
                "B"
            } else {
                "A"
            };
            forged.replace_range(at..=at, other);
            let response = send(&mut service, "GET /r", &[&forged]).await;
            assert_eq!(response.status(), 401, "{algorithm}, forged at {at}");
        }
    }
}
