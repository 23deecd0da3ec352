//! Which addresses are of the public Internet. A tenant's URL must not reach what only this machine or its network can
//! reach: other services, routers, the metadata of a cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address is one of the public Internet (the registries of RFC 6890 say which are not).
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        // The wire server of Azure answers every machine there with its metadata.
        || address == Ipv4Addr::new(168, 63, 129, 16);
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is given out. In it, tunnels (2001::/23 with Teredo, 2002::/16) carry any IPv4 address, and two ranges are
    // for documentation.
    let unicast = (0x2000..0x4000).contains(&first);
    let special = (first == 0x2001 && (second < 0x200 || second == 0x0db8))
        || first == 0x2002
        || (first == 0x3fff && second < 0x1000);
    unicast && !special
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn what_only_this_network_reaches_is_not_public() {
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "3fff::1",
        ] {
            assert!(!is_public(address.parse().expect(address)), "{address}");
        }
        for address in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "::ffff:1.1.1.1", "2606:4700::1111", "2a00::1"]
        {
            assert!(is_public(address.parse().expect(address)), "{address}");
        }
    }
}
