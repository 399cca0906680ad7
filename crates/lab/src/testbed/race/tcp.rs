use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration as Span, Instant};

use socket2::Socket;

use super::track::{Start, Track, wait};
use crate::testbed::error::{TestbedError, system};
use crate::testbed::multipath;
use crate::testbed::namespace::Namespace;

/// The interval of checking for the end of the race.
const LOOK: Span = Span::from_millis(100);
const PIECE: usize = 256 << 10;

/// Lets the sender listen, and the receiver ask when the race begins; over Multipath TCP from all
/// addresses of the receiver.
pub(super) fn start(
    track: Track,
    congestion: &'static str,
    is_multipath: bool,
    [senders, receivers]: [&Namespace; 2],
    start: Start,
) -> Result<Vec<JoinHandle<()>>, TestbedError> {
    if is_multipath {
        let beside = &track.to[1..];
        multipath::manage(senders, beside.len(), &[])?;
        multipath::manage(receivers, beside.len(), beside)?;
    }
    let open = |namespace: &Namespace, address: SocketAddr| {
        let socket = namespace.run(|| multipath::open(address, is_multipath))?;
        rustix::net::sockopt::set_tcp_congestion(&socket, congestion).map_err(|_| {
            TestbedError::Unsupported(format!(
                "this kernel has no congestion control {congestion}; load the module tcp_{congestion}"
            ))
        })?;
        let bound = socket.set_reuse_address(true).and_then(|()| socket.bind(&address.into()));
        bound.map_err(system("bind a socket"))?;
        Ok(socket)
    };
    let listener = open(senders, track.from)?;
    listener.listen(1).map_err(system("listen"))?;
    listener.set_read_timeout(Some(LOOK)).map_err(system("set a time-out"))?;
    let client = open(receivers, SocketAddr::new(track.to[0], 0))?;
    let file = File::open(&track.file.path).map_err(system("open the file"))?;
    let stop = track.stop.clone();
    let serving = thread::Builder::new().name(congestion.to_owned()).spawn(move || {
        let is_over = || stop.load(std::sync::atomic::Ordering::Relaxed);
        // What goes wrong shows at the other end.
        let _ = serve(&listener, file, is_over);
    });
    let fetching = thread::Builder::new().name(congestion.to_owned()).spawn(move || {
        thread::sleep(wait(start));
        let begin = Instant::now();
        let hash = fetch(&track, client).map_err(|error| error.to_string());
        track.arrived(begin.elapsed(), hash);
    });
    Ok(vec![
        serving.map_err(system("start a thread"))?,
        fetching.map_err(system("start a thread"))?,
    ])
}

/// Sends the file to each client.
fn serve(listener: &Socket, mut file: File, is_over: impl Fn() -> bool) -> io::Result<()> {
    let socket = loop {
        match listener.accept() {
            Ok((socket, _)) => break socket,
            Err(_) if !is_over() => {}
            Err(error) => return Err(error),
        }
    };
    socket.set_read_timeout(Some(LOOK))?;
    socket.set_write_timeout(Some(LOOK))?;
    let mut socket = TcpStream::from(socket);
    let mut request = [0; 4];
    while let Err(error) = socket.read_exact(&mut request) {
        if is_over() || !waited(&error) {
            return Err(error);
        }
    }
    let mut buffer = vec![0; PIECE];
    loop {
        let length = file.read(&mut buffer)?;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return socket.shutdown(std::net::Shutdown::Write);
        }
        while !rest.is_empty() {
            match socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if waited(&error) && !is_over() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Asks for the file, writes it down, and gives its hash.
fn fetch(track: &Track, socket: Socket) -> io::Result<String> {
    // A handshake whose packets are lost takes seconds; the race may be over by then.
    let patience = Span::from_secs(60);
    socket.connect_timeout(&track.from.into(), patience)?;
    socket.set_read_timeout(Some(LOOK))?;
    let mut socket = TcpStream::from(socket);
    socket.write_all(b"GET\n")?;
    let mut arrival = File::create(&track.arrival)?;
    let (mut hasher, mut buffer, mut size) = (blake3::Hasher::new(), vec![0; PIECE], 0);
    while size < track.file.size {
        match socket.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                hasher.update(&buffer[..length]);
                arrival.write_all(&buffer[..length])?;
                size += length as u64;
                track.moved(size);
            }
            Err(error) if waited(&error) && !track.is_over() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Returns true if a call ended only for checking whether the race is over.
fn waited(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
