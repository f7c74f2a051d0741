//! Decides which IP addresses are public, so that a URL from outside may be fetched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// IPv4 networks that are local or reserved.
const CLOSED_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),      // this network
    v4([10, 0, 0, 0], 8),     // private
    v4([100, 64, 0, 0], 10),  // behind a carrier's NAT
    v4([127, 0, 0, 0], 8),    // this machine
    v4([169, 254, 0, 0], 16), // this link, and the metadata of clouds
    v4([172, 16, 0, 0], 12),  // private
    v4([192, 0, 0, 0], 24),   // protocols
    v4([192, 0, 2, 0], 24),   // documentation
    v4([192, 88, 99, 0], 24), // relays to IPv6
    v4([192, 168, 0, 0], 16), // private
    v4([198, 18, 0, 0], 15),  // benchmarks
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4), // multicast
    v4([240, 0, 0, 0], 4), // reserved, and broadcast
];

/// The only IPv6 range with public addresses. All others are local, reserved, or contain an IPv4 address (mapped, compatible, NAT64).
const GIVEN_OUT: Ipv6Net = v6(0x2000, 0, 3);

/// Networks in that range that are not public: Teredo and other protocols, documentation, 6to4.
const CLOSED_V6: [Ipv6Net; 4] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x2002, 0, 16), v6(0x3fff, 0, 20)];

const fn v4(address: [u8; 4], bits: u8) -> Ipv4Net {
    let [a, b, c, d] = address;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(first: u16, second: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), bits)
}

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => GIVEN_OUT.contains(&address) && !CLOSED_V6.iter().any(|net| net.contains(&address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_every_network_are_where_they_should_be() {
        let outside = [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2606:4700::1111",
            "2a00::1",
            "3ffe::1",
            "3fff:1000::",
        ];
        let inside = [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.0",
            "127.255.255.255",
            "169.254.0.0",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.0",
            "192.0.2.255",
            "192.88.99.1",
            "192.168.0.0",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "1fff::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002::",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fdff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ffff::1",
        ];
        let address = |text: &&str| text.parse::<IpAddr>().expect("an address");
        for (texts, expected) in [(&outside[..], true), (&inside[..], false)] {
            for text in texts {
                assert_eq!(is_public(address(text)), expected, "{text}");
            }
        }
    }
}
