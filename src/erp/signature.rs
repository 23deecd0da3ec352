//! The signature of a webhook, after Standard Webhooks: HMAC-SHA256 over id, time and body, so that the receiver knows who
//! sent it, that nothing was changed, and when it was sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The secret that sender and receiver share. It has no `Debug`, so that it cannot be logged.
pub(super) struct SigningKey(Vec<u8>);

impl SigningKey {
    /// Reads a secret: Base64 of 24 to 64 bytes, with or without `whsec_` before it. `None` for any other text.
    pub(super) fn read(secret: &str) -> Option<SigningKey> {
        let secret = secret.trim();
        let bytes = STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()?;
        (24..=64).contains(&bytes.len()).then_some(SigningKey(bytes))
    }

    /// The value of `webhook-signature`. `timestamp` counts seconds since 1970.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::SigningKey;

    /// The example of the Standard Webhooks specification's reference libraries.
    #[test]
    fn the_published_example_gets_its_signature() {
        let key = SigningKey::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("it is a secret");
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for secret in ["", "whsec_", "short", "whsec_c2hvcnQ=", "not base64 at all, but long enough to be one"] {
            assert!(SigningKey::read(secret).is_none(), "{secret}");
        }
    }
}
