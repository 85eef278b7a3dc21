//! How many connections each address has: one that held them all would exclude all others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::auth::limits::network_of;

/// The connections of each address. Checked when one begins and when it ends.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    max: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A connection that counts; until it is dropped.
#[derive(Debug)]
pub(super) struct PeerPlace {
    peers: Peers,
    network: IpAddr,
}

impl Peers {
    /// At most so many connections per address.
    pub(super) fn new(max: usize) -> Self {
        Peers { max, open: Arc::default() }
    }

    /// Counts a connection of an address; `None` if it has as many as it may have.
    pub(super) fn admit(&self, address: IpAddr) -> Option<PeerPlace> {
        let network = network_of(address);
        let mut open = self.lock();
        let count = open.entry(network).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(PeerPlace { peers: self.clone(), network })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().expect("no holder of this lock panics")
    }
}

impl Drop for PeerPlace {
    fn drop(&mut self) {
        let mut open = self.peers.lock();
        if let Some(count) = open.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_as_many_as_it_may_and_gives_them_back() {
        let peers = Peers::new(2);
        let admit = |address: &str| peers.admit(address.parse().expect("an address"));
        let first = admit("192.0.2.7").expect("the first");
        let _second = admit("::ffff:192.0.2.7").expect("the second");
        assert!(admit("192.0.2.7").is_none());
        let _other = admit("192.0.2.8").expect("another address");
        drop(first);
        let _third = admit("192.0.2.7").expect("given back");
        let _networks = [admit("2001:db8::1"), admit("2001:db8::2")].map(Option::unwrap);
        assert!(admit("2001:db8::ffff").is_none(), "one network");
        assert!(admit("2001:db8:0:1::1").is_some(), "another network");
        drop((_other, _third, _second, _networks));
        assert!(peers.lock().is_empty(), "nobody is remembered");
    }
}
