//! Servers of this machine that a trick may call: TCP, UDP, a Unix socket, and a sender of sound by RTP.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::media::SECRET;
use crate::scene::Scene;

pub(super) struct Neighbours {
    tcp: SocketAddr,
    udp: UdpSocket,
    unix: UnixListener,
    rtp: u16,
    has_ended: Arc<AtomicBool>,
    answering: JoinHandle<usize>,
    sending: JoinHandle<()>,
}

impl Neighbours {
    pub(super) fn start(scene: &Scene) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let unix = UnixListener::bind(scene.path("socket")).unwrap();
        unix.set_nonblocking(true).unwrap();
        let has_ended = Arc::new(AtomicBool::new(false));
        let rtp = free_even_port();
        Self {
            tcp: tcp.local_addr().unwrap(),
            udp,
            unix,
            rtp,
            has_ended: Arc::clone(&has_ended),
            answering: thread::spawn({
                let has_ended = Arc::clone(&has_ended);
                move || answer(&tcp, &has_ended)
            }),
            sending: thread::spawn(move || send(rtp, &has_ended)),
        }
    }

    /// A text with the ports in their places.
    pub(super) fn fill(&self, text: &str) -> String {
        let udp = self.udp.local_addr().unwrap().port();
        let ports = [("TCP", self.tcp.port()), ("UDP", udp), ("RTP", self.rtp)];
        ports.into_iter().fold(text.into(), |text, (sign, port)| text.replace(sign, &port.to_string()))
    }

    /// How many calls arrived.
    pub(super) fn calls(self) -> usize {
        self.has_ended.store(true, Ordering::SeqCst);
        // Calls are answered in the order in which they came, so this one is the last.
        drop(TcpStream::connect(self.tcp));
        self.sending.join().unwrap();
        let by_udp = usize::from(self.udp.recv(&mut [0; 2048]).is_ok());
        let by_unix = usize::from(self.unix.accept().is_ok());
        self.answering.join().unwrap() - 1 + by_udp + by_unix
    }
}

/// RTP takes an even port, and the next one for reports.
fn free_even_port() -> u16 {
    loop {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port.is_multiple_of(2) {
            return port;
        }
    }
}

/// Hangs up on each caller.
fn answer(listener: &TcpListener, has_ended: &AtomicBool) -> usize {
    let mut calls = 0;
    loop {
        drop(listener.accept().unwrap());
        calls += 1;
        if has_ended.load(Ordering::SeqCst) {
            // The backlog may hold more than one: those before the last call.
            listener.set_nonblocking(true).unwrap();
            while listener.accept().is_ok() {
                calls += 1;
            }
            return calls;
        }
    }
}

/// Sends the secret as sound (16 bit, one channel) to whoever listens.
fn send(port: u16, has_ended: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let sound = SECRET.repeat(20);
    for number in 0_u16.. {
        if has_ended.load(Ordering::SeqCst) {
            return;
        }
        let time = u32::from(number) * (sound.len() / 2) as u32;
        let packet =
            [&[0x80, 96], &number.to_be_bytes()[..], &time.to_be_bytes(), &[1, 2, 3, 4], &sound].concat();
        // Nobody may listen yet. Reading paces the packets.
        let _ = socket.send_to(&packet, ("127.0.0.1", port));
        let _ = socket.recv(&mut [0; 1]);
    }
}
