//! The address that a tenant's connection names: what can never be connected to, or must not be, is refused before it is
//! written down. A name is looked at once more when it is resolved.

use std::net::IpAddr;

use url::{Host, Url};

use super::Failure;
use super::public_address::is_public;

/// The most characters of a host name, and of each of its labels (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// The host of an address, as it is resolved: a name in ASCII without brackets, or an IP address.
///
/// # Errors
/// [`Failure::Misconfigured`] in words that say what to change. They never repeat the address: it may hold a secret.
pub(crate) fn host(url: &Url, allow_private: bool) -> Result<String, Failure> {
    let wrong = |text: &str| Err(Failure::Misconfigured(text.to_owned()));
    if !url.username().is_empty() || url.password().is_some() {
        return wrong(
            "the URL holds a name or a password, which would be stored with it; a secret goes into --secret-env",
        );
    }
    if url.fragment().is_some() {
        return wrong("the URL has a part behind '#', which is never sent; leave it out");
    }
    if url.port() == Some(0) {
        return wrong("the URL has the port 0, at which nothing listens");
    }
    let Some(written) = url.host_str().filter(|host| !host.is_empty()) else { return wrong("the URL has no host") };
    // For other schemes than those of the web the host is still as it was written.
    match Host::parse(written) {
        Ok(Host::Ipv4(address)) => reachable(IpAddr::V4(address), allow_private),
        Ok(Host::Ipv6(address)) => reachable(IpAddr::V6(address), allow_private),
        Ok(Host::Domain(name)) if is_name(&name) => Ok(name),
        Ok(Host::Domain(_)) | Err(_) => wrong("the host of the URL is no host name and no IP address"),
    }
}

/// What is said of a host that must not be connected to.
pub(crate) fn in_a_private_network(host: &str) -> String {
    format!("'{host}' is in a private network; only ORDERS_ERP_ALLOW_PRIVATE=on lets the service connect to it")
}

fn reachable(address: IpAddr, allow_private: bool) -> Result<String, Failure> {
    let host = address.to_string();
    if allow_private || is_public(address) {
        Ok(host)
    } else {
        Err(Failure::Misconfigured(in_a_private_network(&host)))
    }
}

/// Whether it is a host name (RFC 1123, section 2.1), with the underscores that some networks have, and perhaps with a dot
/// behind it.
fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_letter);
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::host;
    use crate::erp::Failure;

    fn read(url: &str, allow_private: bool) -> Result<String, String> {
        host(&Url::parse(url).expect("the test writes URLs"), allow_private).map_err(|failure| match failure {
            Failure::Misconfigured(text) => text,
            other => panic!("{url}: {other:?}"),
        })
    }

    #[test]
    fn a_host_is_what_will_be_resolved() {
        for (url, found) in [
            ("https://erp.example:8443/o?x=1", "erp.example"),
            ("https://ERP.example./o", "erp.example."),
            ("https://erp_1.example", "erp_1.example"),
            ("smtp://mail:587", "mail"),
            ("smtp://Müller.example", "xn--mller-kva.example"),
            ("smtps://[2606:4700::1111]:465", "2606:4700::1111"),
            ("smtp://8.8.8.8", "8.8.8.8"),
        ] {
            assert_eq!(read(url, false).as_deref(), Ok(found), "{url}");
        }
        assert_eq!(read("smtp://127.0.0.1:25", true).as_deref(), Ok("127.0.0.1"));
    }

    #[test]
    fn what_can_never_work_is_refused_in_words_without_a_secret() {
        let long = format!("https://{}.example", "a".repeat(64));
        for (url, words) in [
            ("https://user:topsecret@erp.example/o", "a name or a password"),
            ("https://topsecret@erp.example/o", "a name or a password"),
            ("smtp://:topsecret@mail.example", "a name or a password"),
            ("https://erp.example/o#topsecret", "behind '#'"),
            ("smtp://mail.example#", "behind '#'"),
            ("https://erp.example:0/o", "port 0"),
            ("smtp://mail.example:0", "port 0"),
            ("smtp://", "no host"),
            ("https://a..b/", "no host name"),
            ("https://.example/", "no host name"),
            ("smtps://..", "no host name"),
            ("smtp://%20", "no host name"),
            ("smtp://host_%0d%0aX", "no host name"),
            ("smtp://a!b.example", "no host name"),
            (&long, "no host name"),
        ] {
            let said = read(url, true).expect_err(url);
            assert!(said.contains(words) && !said.contains("topsecret"), "{url}: {said}");
        }
        for url in [
            "smtp://127.0.0.1:25",
            "smtp://[::1]",
            "smtp://169.254.169.254",
            "smtp://%31%32%37.0.0.1",
            "smtp://2130706433",
        ] {
            assert!(read(url, false).expect_err(url).contains("in a private network"), "{url}");
        }
    }
}
