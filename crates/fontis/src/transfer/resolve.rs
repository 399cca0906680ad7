use std::net::{SocketAddr, ToSocketAddrs};

use super::TransferError;
use crate::url::Url;

/// The addresses of a URL's host, as the system orders them.
pub async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, TransferError> {
    let (host, port) = (url.host.clone(), url.port);
    let name = host.clone();
    let found = tokio::task::spawn_blocking(move || {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        (bare, port).to_socket_addrs().map(Vec::from_iter)
    });
    found
        .await
        .map_err(|_| TransferError::Worker)?
        .map_err(|source| TransferError::Resolve { host, source })
}
