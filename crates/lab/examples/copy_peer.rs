//! Copies a file over QUIC (quinn) or TCP, as `fontis serve` and `fontis get` do over DFCP: what
//! `scripts/speed_bench.py` sets beside them.
//!
//! ```sh
//! cargo build --release -p fontis-lab --example copy_peer
//! target/release/examples/copy_peer quic serve 127.0.0.1:4433 FILE CERTIFICATE
//! target/release/examples/copy_peer quic get 127.0.0.1:4433 COPY CERTIFICATE
//! target/release/examples/copy_peer floor 1000000000
//! ```
//!
//! The sender reads and hashes (BLAKE3), the receiver hashes, compares and writes. QUIC encrypts
//! with AES-128-GCM and uses the system's segmentation offloads; its flow control windows are wide
//! enough for any path here. The server writes its certificate where the client reads it. `floor`
//! says how many CPU seconds nothing but the hash and the sealing of 1472-byte datagrams take.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use quinn::rustls::crypto::{CryptoProvider, ring as tls};
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, CipherSuite, RootCertStore};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use quinn::{TokioRuntime, crypto::rustls as quic};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use socket2::SockRef;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const NAME: &str = "sender";
const PIECE: usize = 256 << 10;
/// More than any path here holds.
const WINDOW: u32 = 64 << 20;
/// As large as those of Fontis.
const SOCKET_BUFFER: usize = 4 << 20;
const HASH: usize = blake3::OUT_LEN;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["quic", side, address, file, certificate] => {
            let (address, file, certificate) =
                (address.parse()?, file.as_ref(), certificate.as_ref());
            let runtime = tokio::runtime::Runtime::new()?;
            match side {
                "serve" => runtime.block_on(serve_quic(address, file, certificate)),
                "get" => runtime.block_on(get_quic(address, file, certificate)),
                _ => Err(usage()),
            }
        }
        ["tcp", "serve", address, file] => serve_tcp(address.parse()?, file.as_ref()),
        ["tcp", "get", address, file] => get_tcp(address.parse()?, file.as_ref()),
        ["floor", bytes] => floor(bytes.parse()?),
        _ => Err(usage()),
    }
}

fn usage() -> Box<dyn Error> {
    "usage: copy_peer quic serve|get ADDRESS FILE CERTIFICATE, copy_peer tcp serve|get ADDRESS FILE, copy_peer floor BYTES"
        .into()
}

/// AES-128-GCM and nothing else.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = tls::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .receive_window(WINDOW.into())
        .stream_receive_window(WINDOW.into())
        .send_window(WINDOW.into());
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> Outcome<Endpoint> {
    let socket = UdpSocket::bind(address)?;
    SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER)?;
    SockRef::from(&socket).set_send_buffer_size(SOCKET_BUFFER)?;
    Ok(Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?)
}

async fn serve_quic(address: SocketAddr, file: &Path, certificate: &Path) -> Outcome {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())?;
    let mut config = ServerConfig::with_crypto(Arc::new(quic::QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let endpoint = endpoint(address, Some(config))?;
    std::fs::write(certificate, made.cert.der())?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut stream, _) = connection.accept_bi().await?;
    let mut file = File::open(file)?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; PIECE]);
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
        stream.write_all(&buffer[..length]).await?;
    }
    stream.write_all(hasher.finalize().as_bytes()).await?;
    stream.finish()?;
    connection.closed().await;
    Ok(())
}

async fn get_quic(address: SocketAddr, file: &Path, certificate: &Path) -> Outcome {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(std::fs::read(certificate)?))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(quic::QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let mut endpoint = endpoint(any.parse()?, None)?;
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(address, NAME)?.await?;
    let (mut request, mut stream) = connection.open_bi().await?;
    request.write_all(b"GET").await?;
    let mut copy = Copy::begin(file)?;
    while let Some(chunk) = stream.read_chunk(PIECE, true).await? {
        copy.take(&chunk.bytes)?;
    }
    copy.end()?;
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(())
}

fn serve_tcp(address: SocketAddr, file: &Path) -> Outcome {
    let (mut stream, _) = TcpListener::bind(address)?.accept()?;
    let mut file = File::open(file)?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; PIECE]);
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
        stream.write_all(&buffer[..length])?;
    }
    stream.write_all(hasher.finalize().as_bytes())?;
    Ok(())
}

fn get_tcp(address: SocketAddr, file: &Path) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    let (mut copy, mut buffer) = (Copy::begin(file)?, vec![0; PIECE]);
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return copy.end();
        }
        copy.take(&buffer[..length])?;
    }
}

/// A file that arrives, its hash behind it.
struct Copy {
    file: File,
    hasher: blake3::Hasher,
    /// The last bytes seen, which may be the hash.
    tail: Vec<u8>,
}

impl Copy {
    fn begin(file: &Path) -> Outcome<Self> {
        Ok(Self { file: File::create(file)?, hasher: blake3::Hasher::new(), tail: Vec::new() })
    }

    fn take(&mut self, bytes: &[u8]) -> Outcome {
        let beyond = (self.tail.len() + bytes.len()).saturating_sub(HASH);
        let old: Vec<u8> = self.tail.drain(..beyond.min(self.tail.len())).collect();
        let (new, tail) = bytes.split_at(beyond - old.len());
        for content in [&old, new] {
            self.hasher.update(content);
            self.file.write_all(content)?;
        }
        self.tail.extend_from_slice(tail);
        Ok(())
    }

    fn end(self) -> Outcome {
        if self.tail != self.hasher.finalize().as_bytes() {
            return Err("the copy has another hash than the file".into());
        }
        Ok(())
    }
}

/// What cannot be done without: hash twice, seal and open each datagram.
fn floor(bytes: usize) -> Outcome {
    let datagram = 1472;
    let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "no key")?;
    let key = LessSafeKey::new(key);
    let mut content = vec![7; PIECE];
    let rounds = bytes / PIECE;
    let begin = Instant::now();
    let mut hasher = blake3::Hasher::new();
    for _ in 0..2 * rounds {
        hasher.update(&content);
    }
    let hash = begin.elapsed();
    let begin = Instant::now();
    for _ in 0..rounds {
        for piece in content.chunks_exact_mut(datagram) {
            let nonce = || Nonce::assume_unique_for_key([0; 12]);
            let tag = key.seal_in_place_separate_tag(nonce(), Aad::from([0; 13]), piece);
            let tag = tag.map_err(|_| "cannot seal")?;
            key.open_in_place_separate_tag(nonce(), Aad::from([0; 13]), tag, piece, 0..)
                .map_err(|_| "cannot open")?;
        }
    }
    let seal = begin.elapsed();
    let per_gb = |time: std::time::Duration| time.as_secs_f64() * 1e9 / (rounds * PIECE) as f64;
    println!("{{\"hash\": {:.3}, \"seal\": {:.3}}}", per_gb(hash), per_gb(seal));
    std::hint::black_box(hasher.finalize());
    Ok(())
}
