//! `ORDERS_CORS_ORIGINS`: the web pages that may call the API from a browser.

use url::Url;

/// Which origins (RFC 6454) a browser may call the API from. API keys are sent by header and never by cookie, so `*`
/// opens nothing to a page that does not hold a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Every origin.
    Any,
    /// These and no other, in the form in which browsers send them; none when the list is empty.
    These(Vec<String>),
}

impl CorsOrigins {
    pub(super) fn parse(text: &str) -> Option<CorsOrigins> {
        match text {
            "*" => Some(CorsOrigins::Any),
            "" => Some(CorsOrigins::These(Vec::new())),
            list => list.split(',').map(|origin| parse_origin(origin.trim())).collect::<Option<_>>().map(Self::These),
        }
    }
}

/// An origin exactly as a browser sends it. `https://Shop.example/` or `https://shop.example:443` would never match, so
/// they are refused rather than kept as a setting without effect.
fn parse_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::CorsOrigins;

    #[test]
    fn a_list_of_origins_is_kept_as_browsers_send_them() {
        let origins = CorsOrigins::parse("https://shop.example, http://localhost:3000");
        let expected = vec!["https://shop.example".to_owned(), "http://localhost:3000".to_owned()];
        assert_eq!(origins, Some(CorsOrigins::These(expected)));
        assert_eq!(CorsOrigins::parse(""), Some(CorsOrigins::These(vec![])));
        assert_eq!(CorsOrigins::parse("*"), Some(CorsOrigins::Any));
    }

    #[test]
    fn what_no_browser_sends_is_refused() {
        for text in [
            "shop.example",
            "https://shop.example/",
            "https://shop.example:443",
            "https://Shop.example",
            "https://a.example,",
            "https://a.example,*",
            "null",
            "ftp://a.example",
            "https://u@a.example",
        ] {
            assert_eq!(CorsOrigins::parse(text), None, "{text}");
        }
    }
}
