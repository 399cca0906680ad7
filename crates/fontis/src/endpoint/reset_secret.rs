use std::net::SocketAddr;

/// The secret of an endpoint's reset tokens (RFC 9000, section 21.11): no two endpoints that run at
/// the same time have the same, since the one would answer for connections of the other. So it
/// depends on the address that the endpoint is bound to.
///
/// One that is bound to the same address after a restart has the same secret again, so that peers
/// learn at once that it has forgotten their connections.
pub(super) fn reset_secret(identity: &[u8; 32], bound: SocketAddr) -> [u8; 32] {
    let mut key = blake3::Hasher::new_derive_key("fontis 2 reset tokens");
    key.update(identity);
    key.update(bound.to_string().as_bytes());
    // A user may have the same identity, and the same port, on several machines.
    key.update(b"\0");
    key.update(&std::fs::read("/etc/machine-id").unwrap_or_default());
    *key.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_has_a_secret_of_its_own_and_keeps_it_with_its_address() {
        let secret = |identity, text: &str| reset_secret(&[identity; 32], text.parse().unwrap());
        assert_eq!(secret(1, "127.0.0.1:4433"), secret(1, "127.0.0.1:4433"));
        assert_ne!(secret(1, "127.0.0.1:4433"), secret(1, "127.0.0.1:4434"));
        assert_ne!(secret(1, "127.0.0.1:4433"), secret(1, "127.0.0.2:4433"));
        assert_ne!(secret(1, "127.0.0.1:4433"), secret(2, "127.0.0.1:4433"));
    }
}
