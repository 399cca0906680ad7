use std::error::Error;
use std::fmt::Display;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::BbrConfig;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;

use super::track::{Start, Track, wait};
use crate::testbed::error::{TestbedError, system};
use crate::testbed::namespace::Namespace;

/// The name in the certificate that is made for a race.
const NAME: &str = "sender";

fn failed(problem: impl Display) -> TestbedError {
    TestbedError::Flow { flow: "quic".to_owned(), problem: problem.to_string() }
}

/// Lets the sender listen, and the receiver ask when the race begins.
pub(super) fn start(
    track: Track,
    [senders, receivers]: [&Namespace; 2],
    start: Start,
    runtime: &Runtime,
) -> Result<(), TestbedError> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(failed)?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut transport = TransportConfig::default();
    // No window of its own is to hold it back.
    let window = VarInt::try_from(track.window).unwrap_or(VarInt::MAX);
    transport
        .congestion_controller_factory(Arc::new(BbrConfig::default()))
        .receive_window(window)
        .stream_receive_window(window)
        .send_window(track.window);
    let transport = Arc::new(transport);
    let mut server =
        ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).map_err(failed)?;
    server.transport_config(Arc::clone(&transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).map_err(failed)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).map_err(failed)?;
    client.transport_config(transport);
    let bind = |namespace: &Namespace, address, config| {
        let socket = namespace.run(|| {
            let socket = UdpSocket::bind(address).map_err(system("bind a socket"))?;
            // As large as those of Fontis.
            use rustix::net::sockopt::{
                set_socket_recv_buffer_size_force, set_socket_send_buffer_size_force,
            };
            let _ = set_socket_recv_buffer_size_force(&socket, 4 << 20);
            let _ = set_socket_send_buffer_size_force(&socket, 4 << 20);
            Ok(socket)
        })?;
        let _inside = runtime.enter();
        Endpoint::new(Default::default(), config, socket, Arc::new(TokioRuntime)).map_err(failed)
    };
    let sender = bind(senders, track.from, Some(server))?;
    let mut receiver = bind(receivers, SocketAddr::new(track.to[0], 0), None)?;
    receiver.set_default_client_config(client);
    let path = track.file.path.clone();
    runtime.spawn(async move {
        // What goes wrong shows at the other end.
        let Some(incoming) = sender.accept().await else { return };
        let Ok(connection) = incoming.await else { return };
        let Ok((mut send, mut receive)) = connection.accept_bi().await else { return };
        let mut request = [0; 4];
        let Ok(()) = receive.read_exact(&mut request).await else { return };
        let Ok(mut file) = tokio::fs::File::open(path).await else { return };
        let mut buffer = vec![0; 256 << 10];
        while let Ok(length @ 1..) = file.read(&mut buffer).await {
            if send.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
        let _ = send.finish();
        connection.closed().await;
    });
    runtime.spawn(async move {
        tokio::time::sleep(wait(start)).await;
        let begin = Instant::now();
        let hash = fetch(&track, &receiver).await;
        track.arrived(begin.elapsed(), hash);
    });
    Ok(())
}

/// Asks for the file, writes it down, and gives its hash.
async fn fetch(track: &Track, endpoint: &Endpoint) -> Result<String, String> {
    let text = |error: &dyn Error| {
        error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    };
    let connecting = endpoint.connect(track.from, NAME).map_err(|error| text(&error))?;
    let connection = connecting.await.map_err(|error| text(&error))?;
    let (mut send, mut receive) = connection.open_bi().await.map_err(|error| text(&error))?;
    send.write_all(b"GET\n").await.map_err(|error| text(&error))?;
    let arrival = tokio::fs::File::create(&track.arrival).await;
    let mut arrival = arrival.map_err(|error| text(&error))?;
    let (mut hasher, mut size) = (blake3::Hasher::new(), 0);
    while size < track.file.size {
        let chunk = receive.read_chunk(256 << 10, true).await;
        let Some(chunk) = chunk.map_err(|error| text(&error))? else {
            return Err("the stream ended before its time".to_owned());
        };
        hasher.update(&chunk.bytes);
        size += chunk.bytes.len() as u64;
        arrival.write_all(&chunk.bytes).await.map_err(|error| text(&error))?;
        track.moved(size);
    }
    connection.close(VarInt::from_u32(0), b"");
    Ok(hasher.finalize().to_hex().to_string())
}
