//! A TCP proxy before a server: forwards, swallows what the server answers, or cuts.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A running proxy. Its threads end with its connections.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    swallowing: AtomicBool,
    /// Connections so far.
    count: AtomicU64,
    /// Connections with a smaller number lose everything.
    forgotten: AtomicU64,
    connections: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts a proxy before a server on this machine.
    pub(crate) fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Mutex::new(Vec::new());
        let state = Arc::new(State {
            swallowing: false.into(),
            count: 0.into(),
            forgotten: 0.into(),
            connections,
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // Nobody listens behind the proxy: the client sees a closed connection.
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else {
                    continue;
                };
                shared.join(&client, &server);
            }
        });
        Proxy { port, state }
    }

    /// The port that clients connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// From now on answers get lost on their way; requests still arrive.
    pub(crate) fn swallow_answers(&self) {
        self.state.swallowing.store(true, Ordering::SeqCst);
    }

    /// The peers of all present connections vanish without a word; new connections work.
    pub(crate) fn forget_present(&self) {
        self.state.forgotten.store(self.state.count.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Forwards again. Connections whose answers got lost are cut, as a network would.
    pub(crate) fn forward(&self) {
        self.cut();
        self.state.swallowing.store(false, Ordering::SeqCst);
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        for connection in self.state.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let id = self.count.fetch_add(1, Ordering::SeqCst);
        for stream in [client, server] {
            let _ = stream.set_nodelay(true);
            self.connections.lock().unwrap().push(stream.try_clone().unwrap());
        }
        for (from, to, answers) in [(client, server, false), (server, client, true)] {
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = Arc::clone(self);
            thread::spawn(move || state.copy(id, from, to, answers));
        }
    }

    fn copy(&self, id: u64, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(read) = from.read(&mut buffer) {
            let lost = id < self.forgotten.load(Ordering::SeqCst)
                || (answers && self.swallowing.load(Ordering::SeqCst));
            if read == 0 || (!lost && to.write_all(&buffer[..read]).is_err()) {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
