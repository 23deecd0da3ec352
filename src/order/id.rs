//! The id of an order: made by the service, or chosen by the client within a syntax of its own.

/// The name of the path parameter.
pub const ORDER_ID: &str = "orderId";

/// How an id that the service made begins; clients may not choose such a one.
pub const OWN_PREFIX: &str = "ord_";

/// A new id: time-ordered (UUID version 7, RFC 9562), so that new orders lie together in an index.
#[must_use]
pub fn new_order_id() -> String {
    format!("{OWN_PREFIX}{}", uuid::Uuid::now_v7().simple())
}

/// Whether a client may choose `id`: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`, not beginning with `ord_`.
#[must_use]
pub fn may_be_chosen(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !id.starts_with(OWN_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_choose_plain_ids_that_are_not_ours() {
        for id in ["1", "web-1", "A.b_c-9", &"x".repeat(64)] {
            assert!(may_be_chosen(id), "{id}");
        }
        for id in ["", "-a", ".a", "a b", "a/b", "ä", "ord_1", &"x".repeat(65)] {
            assert!(!may_be_chosen(id), "{id}");
        }
    }

    #[test]
    fn our_own_ids_differ_and_cannot_be_chosen() {
        let (one, two) = (new_order_id(), new_order_id());
        assert_ne!(one, two);
        assert!(!may_be_chosen(&one));
    }
}
