//! A private Redis Cluster of masters without replicas: free ports, killed at the end.

use std::time::{Duration, Instant};

use super::process::free_port;
use super::redis::Redis;

/// Longest wait for the masters to agree.
const LIMIT: Duration = Duration::from_secs(20);

/// Slots of a cluster.
const SLOTS: usize = 16_384;

/// Keys moved in one command.
const KEYS_MAX: &str = "100";

/// A running cluster.
pub struct Cluster {
    /// Its masters, each with an equal share of the slots, in their order.
    pub masters: Vec<Redis>,
}

impl Cluster {
    /// Starts three masters with further options and waits until they agree.
    pub fn start(options: &[&str]) -> Self {
        let mut masters = Vec::new();
        let mut buses = Vec::new();
        for _ in 0..3 {
            let bus = free_port().to_string();
            let mut all = vec!["--cluster-enabled", "yes", "--cluster-port", &bus];
            all.extend(["--cluster-node-timeout", "1000"]);
            all.extend(options);
            masters.push(Redis::start_with(&all));
            buses.push(bus);
        }
        for (index, master) in masters.iter().enumerate() {
            let first = (index * SLOTS / masters.len()).to_string();
            let last = ((index + 1) * SLOTS / masters.len() - 1).to_string();
            assert_eq!(master.cli(&["cluster", "addslotsrange", &first, &last]), "OK");
            // Otherwise two of them may choose the same and take a while to notice.
            let epoch = (index + 1).to_string();
            assert_eq!(master.cli(&["cluster", "set-config-epoch", &epoch]), "OK");
        }
        for (master, bus) in masters.iter().zip(&buses).skip(1) {
            let port = master.port().to_string();
            assert_eq!(masters[0].cli(&["cluster", "meet", "127.0.0.1", &port, bus]), "OK");
        }
        let cluster = Cluster { masters };
        cluster.wait_until_well();
        cluster
    }

    /// The URL for clients: the first master, and the others as further nodes.
    pub fn url(&self) -> String {
        let ports: Vec<u16> = self.masters.iter().map(Redis::port).collect();
        let others = ports[1..].iter().map(|port| format!("node=127.0.0.1:{port}"));
        let others: Vec<String> = others.collect();
        format!("redis-cluster://127.0.0.1:{}?{}", ports[0], others.join("&"))
    }

    /// Waits until every master sees all slots served.
    pub fn wait_until_well(&self) {
        let known = format!("cluster_known_nodes:{}", self.masters.len());
        self.wait_for(self.masters.len(), &["cluster_state:ok", &known]);
    }

    /// Waits until the live masters refuse to serve, because a share of the slots is gone.
    pub fn wait_until_down(&self, alive: usize) {
        self.wait_for(alive, &["cluster_state:fail"]);
    }

    fn wait_for(&self, count: usize, signs: &[&str]) {
        let shows_all = |master: &&Redis| {
            let info = master.cli(&["cluster", "info"]);
            signs.iter().all(|sign| info.contains(sign))
        };
        let deadline = Instant::now() + LIMIT;
        while self.masters.iter().filter(shows_all).count() < count {
            let said = self.masters[0].cli(&["cluster", "nodes"]);
            assert!(Instant::now() < deadline, "the cluster does not show {signs:?}: {said}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// The slot of a partition's keys.
    pub fn slot_of(&self, partition: u32) -> u16 {
        let slot = self.masters[0].cli(&["cluster", "keyslot", &format!("{{{partition}}}")]);
        slot.parse().expect("a slot")
    }

    /// Which master had a partition's keys at the start.
    pub fn home_of(&self, partition: u32) -> usize {
        usize::from(self.slot_of(partition)) * self.masters.len() / SLOTS
    }

    /// Moves a slot with all its keys, as `redis-cli --cluster reshard` does.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        self.move_keys(slot, from, to);
        self.end_move(slot, from, to);
    }

    /// Marks a slot as under way.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        self.set_slot(to, slot, &["importing", &self.id_of(from)]);
        self.set_slot(from, slot, &["migrating", &self.id_of(to)]);
    }

    /// Moves the keys of a slot that is under way.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize) {
        let (source, port) = (&self.masters[from], self.masters[to].port().to_string());
        loop {
            let slot = slot.to_string();
            let listed = source.cli(&["cluster", "getkeysinslot", &slot, KEYS_MAX]);
            let keys: Vec<&str> = listed.lines().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() {
                break;
            }
            let head = ["migrate", "127.0.0.1", &port, "", "0", "5000", "keys"];
            let moved = source.cli(&[&head, &keys[..]].concat());
            assert!(moved == "OK" || moved == "NOKEY", "{moved}");
        }
    }

    /// Gives a slot to its new master.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        for master in [to, from] {
            self.set_slot(master, slot, &["node", &self.id_of(to)]);
        }
    }

    fn id_of(&self, master: usize) -> String {
        self.masters[master].cli(&["cluster", "myid"])
    }

    fn set_slot(&self, master: usize, slot: u16, rest: &[&str]) {
        let slot = slot.to_string();
        let arguments = [&["cluster", "setslot", &slot], rest].concat();
        assert_eq!(self.masters[master].cli(&arguments), "OK", "{arguments:?}");
    }
}
