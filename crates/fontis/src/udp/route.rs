use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// The address from which the system sends towards another, as it knows without sending anything;
/// an error if there is no way.
pub fn source_towards(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match remote {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(remote)?;
    Ok(socket.local_addr()?.ip().to_canonical())
}
