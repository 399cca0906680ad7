use std::path::PathBuf;

use fontis_proto::dfcp::DfcpConfig;
use zeroize::Zeroizing;

use crate::key_log::KeyLog;
use crate::protection::PresharedKey;
use crate::token_store::TokenStore;

/// The configuration of an endpoint.
#[derive(Clone)]
pub struct EndpointConfig {
    /// This side's private X25519 key.
    pub secret: Zeroizing<[u8; 32]>,
    /// A secret that the other side must know too.
    pub psk: Option<Zeroizing<PresharedKey>>,
    /// The interface that its socket is bound to; `None`: the system chooses for each packet.
    pub device: Option<String>,
    /// The configuration of connections.
    pub transport: DfcpConfig,
    /// The accepted connections.
    pub accept: Accept,
    /// A folder in which every connection leaves its qlog; nothing there is no error of the
    /// connection's.
    pub qlog: Option<PathBuf>,
    /// The key log of connections, for debugging.
    pub key_log: Option<KeyLog>,
    /// The store of servers' tokens, so that the next connection to one needs a round trip less.
    pub tokens: Option<TokenStore>,
    /// Bytes that all connections together may hold for their peers.
    pub memory: u64,
    /// Connections that clients may have at once; those of one network may have a quarter of them.
    pub connections: usize,
}

impl EndpointConfig {
    /// An endpoint with this private X25519 key that accepts nobody, with all else at its default.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret: secret.into(),
            psk: None,
            device: None,
            transport: DfcpConfig::default(),
            accept: Accept::None,
            qlog: None,
            key_log: None,
            tokens: None,
            memory: 1 << 30,
            connections: 1024,
        }
    }
}

/// The clients whose connections an endpoint accepts.
#[derive(Clone, Debug, Default)]
pub enum Accept {
    /// Nobody's.
    #[default]
    None,
    /// Everybody's.
    Anyone,
    /// Clients with these public keys.
    Keys(Vec<[u8; 32]>),
}
