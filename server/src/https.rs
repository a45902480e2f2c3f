//! Clients for outgoing HTTP requests.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use reqwest::redirect::Policy;
use rustls::crypto::ring;

/// Builds a client with ring as its cryptography provider. The database drivers need ring anyway. reqwest's default
/// provider would be a second library, and add most of a minute to a first build.
#[expect(clippy::disallowed_methods, reason = "the one place that names the provider")]
pub fn client() -> reqwest::ClientBuilder {
    // Fails only if a provider is already installed.
    let _ = ring::default_provider().install_default();
    reqwest::Client::builder()
}

/// The addresses that a client may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those out on the internet.
    Public,
    /// All, also this machine and its network.
    All,
}

/// Why a URL can't be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It has no host.
    #[error("it names no host")]
    NoHost,
    /// Its host has no address.
    #[error("its host can't be found")]
    Unknown,
    /// Its host has an address that is not public.
    #[error("it leads to an address that is not public")]
    Private,
}

/// Builds a client for one URL. It connects to the addresses that were checked here: the name is not resolved again between
/// check and use. It follows no redirect, and uses no proxy.
///
/// # Errors
/// See [`AddressError`].
pub async fn client_to(url: &Url, reach: Reach) -> Result<reqwest::ClientBuilder, AddressError> {
    let host = url.host_str().ok_or(AddressError::NoHost)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().ok_or(AddressError::NoHost)?;
    let found = tokio::net::lookup_host((bare, port)).await.map_err(|_| AddressError::Unknown)?;
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(AddressError::Unknown);
    }
    if reach == Reach::Public && !addresses.iter().all(|address| is_public(address.ip())) {
        return Err(AddressError::Private);
    }
    Ok(client().redirect(Policy::none()).no_proxy().resolve_to_addrs(host, &addresses))
}

/// Whether the host of a URL is an IP address that is not public. A name is resolved only when it is used.
pub fn names_private_address(url: &Url) -> bool {
    let bare = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok_and(|address| !is_public(address))
}

/// Whether an address is public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (b == 18 || b == 19);
            let special = v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast();
            !(special || shared || benchmark || a == 0 || a >= 240 || (a == 192 && b == 0))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            // Global unicast is 2000::/3; 2002::/16, 2001::/32 and 64:ff9b::/96 tunnel to any IPv4 address.
            None => {
                v6.segments()[0] & 0xe000 == 0x2000
                    && v6.segments()[0] != 0x2002
                    && ![[0x2001, 0], [0x2001, 0xdb8]].contains(&[v6.segments()[0], v6.segments()[1]])
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_can_be_made_more_than_once() {
        client().build().unwrap();
        client().build().unwrap();
    }

    #[track_caller]
    fn check(address: &str, expected: bool) {
        assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn only_addresses_out_on_the_internet_are_public() {
        check("93.184.216.34", true);
        check("2606:4700::1111", true);
        for inside in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
            "64:ff9b::7f00:1",
            "ff02::1",
        ] {
            check(inside, false);
        }
    }
}
