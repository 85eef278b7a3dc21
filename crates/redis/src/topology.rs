//! The topologies of Redis (one server, sentinels, a cluster), and how each locates its masters.
//!
//! Reads answers of sentinels and cluster nodes; connects to no server. Among contradicting answers
//! the higher configuration epoch is right: both kinds of servers reach agreement that way.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use fred::error::Error;
use fred::types::Value;
use fred::types::config::{Config, Server, ServerConfig};
use numerator_runtime::hosts::is_this_machine;

use super::link::Address;

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// How Redis is set up, from the scheme of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    /// One server (or a name that leads to the master): `redis://`.
    Single(Address),
    /// A master that sentinels watch: `redis-sentinel://`.
    Sentinel {
        /// The sentinels of the URL.
        sentinels: Vec<Address>,
        /// The name under which they watch the master.
        service: String,
    },
    /// Masters that share the slots: `redis-cluster://`.
    Cluster {
        /// The nodes of the URL.
        nodes: Vec<Address>,
    },
}

/// What one server says of the masters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// A sentinel: the master, and its configuration epoch.
    Master(Address, u64),
    /// A cluster node: the masters with their slots, and the configuration epoch of each claim.
    Slots(Vec<Claim>),
}

/// A master's claim to slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    address: Address,
    config_epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
}

/// The location of a key's master, as far as known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Routes {
    /// Not known yet.
    Unknown,
    /// The same for all keys.
    One(Address),
    /// By slot: the first claim that has it is right.
    Slots(Vec<Claim>),
}

impl Topology {
    /// The servers of the URL.
    pub(super) fn seeds(&self) -> &[Address] {
        match self {
            Topology::Single(server) => std::slice::from_ref(server),
            Topology::Sentinel { sentinels, .. } => sentinels,
            Topology::Cluster { nodes } => nodes,
        }
    }

    /// What is known without asking.
    pub(super) fn first_routes(&self) -> Routes {
        match self {
            Topology::Single(server) => Routes::One(server.clone()),
            Topology::Sentinel { .. } | Topology::Cluster { .. } => Routes::Unknown,
        }
    }

    /// Which servers to ask for the masters: those of the URL, and in a cluster those found since.
    pub(super) fn informants(&self, routes: &Routes) -> Vec<Address> {
        let mut informants = match self {
            Topology::Single(_) => Vec::new(),
            Topology::Sentinel { .. } | Topology::Cluster { .. } => self.seeds().to_vec(),
        };
        if matches!(self, Topology::Cluster { .. }) {
            informants.extend(routes.servers());
        }
        informants.sort();
        informants.dedup();
        informants
    }

    /// The question to ask them: a command and its arguments.
    pub(super) fn question(&self) -> (&'static str, Vec<String>) {
        match self {
            Topology::Sentinel { service, .. } => {
                ("SENTINEL", vec!["MASTER".into(), service.clone()])
            }
            Topology::Single(_) | Topology::Cluster { .. } => ("CLUSTER", vec!["NODES".into()]),
        }
    }

    /// Reads an informant's answer.
    pub(super) fn read(&self, informant: &Address, answer: Value) -> Option<Report> {
        match self {
            Topology::Sentinel { .. } => read_master(answer),
            Topology::Single(_) | Topology::Cluster { .. } => {
                let text = answer.as_str()?;
                Some(Report::Slots(
                    text.lines().filter_map(|line| claim(informant, line)).collect(),
                ))
            }
        }
    }
}

impl Routes {
    /// The routes that follow from the reports; `None` if no report has any.
    pub(super) fn of(reports: Vec<Report>) -> Option<Self> {
        let mut master: Option<(Address, u64)> = None;
        let mut claims: Vec<Claim> = Vec::new();
        for report in reports {
            match report {
                Report::Master(address, config_epoch) => {
                    if master.as_ref().is_none_or(|(_, known)| config_epoch > *known) {
                        master = Some((address, config_epoch));
                    }
                }
                Report::Slots(reported) => claims.extend(reported),
            }
        }
        if let Some((address, _)) = master {
            return Some(Routes::One(address));
        }
        claims.sort_by(|a, b| {
            b.config_epoch.cmp(&a.config_epoch).then_with(|| a.address.cmp(&b.address))
        });
        claims.dedup();
        Some(claims).filter(|claims| !claims.is_empty()).map(Routes::Slots)
    }

    /// The master of a slot.
    pub(super) fn server(&self, slot: u16) -> Option<&Address> {
        match self {
            Routes::Unknown => None,
            Routes::One(address) => Some(address),
            Routes::Slots(claims) => {
                let has = |claim: &&Claim| claim.slots.iter().any(|range| range.contains(&slot));
                claims.iter().find(has).map(|claim| &claim.address)
            }
        }
    }

    /// All masters.
    pub(super) fn servers(&self) -> Vec<Address> {
        match self {
            Routes::Unknown => Vec::new(),
            Routes::One(address) => vec![address.clone()],
            Routes::Slots(claims) => claims.iter().map(|claim| claim.address.clone()).collect(),
        }
    }

    /// Notes that a server named another one for a slot: valid until the next look.
    pub(super) fn moved(&mut self, slot: u16, address: Address) {
        if let Routes::Slots(claims) = self {
            claims.insert(0, Claim { address, config_epoch: u64::MAX, slots: vec![slot..=slot] });
        }
    }
}

/// Reads `MOVED 3999 127.0.0.1:6381`; without a host, the host of the server that answered.
pub(super) fn read_moved(informant: &Address, text: &str) -> Option<(u16, Address)> {
    let mut words = text.split_whitespace();
    let ("MOVED", slot, place) = (words.next()?, words.next()?, words.next()?) else { return None };
    let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
    Some((slot, place_of(informant, place)?))
}

fn address(server: &Server) -> Address {
    Address { host: server.host.to_string(), port: server.port }
}

fn addresses(servers: &[Server]) -> Vec<Address> {
    let mut addresses: Vec<Address> = servers.iter().map(address).collect();
    addresses.sort();
    addresses
}

/// Reads `host:port`; without a host, the host of the server that answered.
fn place_of(informant: &Address, text: &str) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() || host == "?" { &informant.host } else { host };
    Some(Address { host: host.to_owned(), port: port.parse().ok().filter(|port| *port != 0)? })
}

/// Reads what a sentinel says of a master: alternating names and values.
fn read_master(answer: Value) -> Option<Report> {
    let words: Vec<String> = answer
        .into_array()
        .into_iter()
        .map(|word| word.into_string().unwrap_or_default())
        .collect();
    let fields: HashMap<&str, &String> =
        words.chunks_exact(2).map(|pair| (pair[0].as_str(), &pair[1])).collect();
    let address =
        Address { host: (*fields.get("ip")?).clone(), port: fields.get("port")?.parse().ok()? };
    Some(Report::Master(address, fields.get("config-epoch")?.parse().ok()?))
}

/// Reads a line of `CLUSTER NODES`: id, `ip:port@bus,name`, flags, master, ping, pong,
/// configuration epoch, link, slots. `None` if the line is not of a master with slots.
fn claim(informant: &Address, line: &str) -> Option<Claim> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, place, flags, _, _, _, config_epoch, _, slots @ ..] = &words[..] else { return None };
    if !flags.split(',').any(|flag| flag == "master") {
        return None;
    }
    let place = place.split(['@', ',']).next()?;
    // `[slot->-node]` shows a slot in migration: it still belongs to the node that lists it.
    let slots = slots.iter().filter(|slots| !slots.starts_with('[')).filter_map(|slots| {
        let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
        let (first, last) = (first.parse().ok()?, last.parse().ok().filter(|last| *last < SLOTS)?);
        Some(first..=last)
    });
    let slots: Vec<RangeInclusive<u16>> = slots.collect();
    let config_epoch = config_epoch.parse().ok()?;
    let address = place_of(informant, place)?;
    (!slots.is_empty()).then_some(Claim { address, config_epoch, slots })
}

/// A URL, taken apart.
pub(super) struct Parsed {
    /// The shape that its scheme names.
    pub topology: Topology,
    /// The client's settings for masters.
    pub masters: Config,
    /// The client's settings for the servers that know where masters are.
    pub informants: Config,
}

/// Takes a URL apart.
///
/// # Errors
/// When it is not one, or of a kind that is not supported.
pub(super) fn parse(url: &str) -> Result<Parsed, Error> {
    let mut masters = Config::from_url(url)?;
    let mut informants = masters.clone();
    let topology = match &masters.server {
        ServerConfig::Centralized { server } => Topology::Single(address(server)),
        ServerConfig::Sentinel { hosts, service_name, username, password } => {
            // Sentinels have no databases, and credentials of their own or none.
            informants.database = None;
            informants.username.clone_from(username);
            informants.password.clone_from(password);
            Topology::Sentinel { sentinels: addresses(hosts), service: service_name.clone() }
        }
        ServerConfig::Clustered { hosts, .. } => Topology::Cluster { nodes: addresses(hosts) },
    };
    if matches!(topology, Topology::Cluster { .. }) {
        // A cluster has the first database only.
        (masters.database, informants.database) = (None, None);
    }
    Ok(Parsed { topology, masters, informants })
}

/// The first server of a URL that is not this machine and would be sent everything without TLS, the
/// password included. `None` also for what is not a URL: the start reports that.
#[must_use]
pub fn unencrypted(url: &str) -> Option<String> {
    if url.starts_with("rediss") {
        return None;
    }
    let topology = parse(url).ok()?.topology;
    let server = topology.seeds().iter().find(|server| !is_this_machine(&server.host))?;
    Some(server.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address { host: "10.0.0.1".into(), port }
    }

    fn cluster() -> Topology {
        Topology::Cluster { nodes: vec![at(1)] }
    }

    fn routes(answers: &[&str]) -> Option<Routes> {
        let read = |answer: &&str| cluster().read(&at(1), Value::from(*answer));
        Routes::of(answers.iter().filter_map(read).collect())
    }

    #[test]
    fn each_shape_is_known_by_its_scheme() {
        let topology = |url: &str| parse(url).map(|parsed| parsed.topology);
        let local = |port| Address { host: "127.0.0.1".into(), port };
        assert_eq!(topology("redis://127.0.0.1:1").unwrap(), Topology::Single(local(1)));
        assert_eq!(topology("rediss://127.0.0.1:1/2").unwrap(), Topology::Single(local(1)));
        assert_eq!(
            topology("redis-cluster://127.0.0.1:1?node=127.0.0.1:2").unwrap(),
            Topology::Cluster { nodes: vec![local(1), local(2)] }
        );
        assert_eq!(
            topology("redis-sentinel://127.0.0.1:1?sentinelServiceName=m&node=127.0.0.1:2")
                .unwrap(),
            Topology::Sentinel { sentinels: vec![local(1), local(2)], service: "m".into() }
        );
        for url in ["", "127.0.0.1:6379", "redis-sentinel://127.0.0.1:1", "redis-unix:///socket"] {
            assert!(topology(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_server_beyond_this_machine_is_named_where_nothing_encrypts() {
        for (url, server) in [
            ("redis://u:secret@cache:6379/0", "cache:6379"),
            ("redis-sentinel://127.0.0.1:1?sentinelServiceName=m&node=10.0.0.1:2", "10.0.0.1:2"),
            ("redis-cluster://[::1]:1?node=cache:2", "cache:2"),
        ] {
            assert_eq!(unencrypted(url).as_deref(), Some(server), "{url}");
            let encrypted = url.replacen("redis", "rediss", 1);
            assert_eq!(unencrypted(&encrypted), None, "{encrypted}");
        }
        for url in ["redis://u:secret@127.0.0.1:6379", "redis://localhost:1", "redis://[::1]:1"] {
            assert_eq!(unencrypted(url), None, "{url}");
        }
    }

    #[test]
    fn sentinels_have_credentials_of_their_own_or_none() {
        let url = "redis-sentinel://u:secret@127.0.0.1:1/3?sentinelServiceName=m";
        let Parsed { masters, informants, .. } = parse(url).unwrap();
        assert_eq!((masters.password.as_deref(), masters.database), (Some("secret"), Some(3)));
        assert_eq!((informants.username, informants.password), (None, None));
        assert_eq!(informants.database, None);
        let parsed = parse(&format!("{url}&sentinelUsername=s&sentinelPassword=other")).unwrap();
        assert_eq!(parsed.informants.username.as_deref(), Some("s"));
        assert_eq!(parsed.informants.password.as_deref(), Some("other"));
    }

    #[test]
    fn a_slot_belongs_to_the_claim_of_the_highest_configuration_epoch() {
        let stale = "a 10.0.0.1:1@11 myself,master - 0 0 1 connected 0-8191\n\
                     b 10.0.0.1:2@12 master - 0 0 2 connected 8192-16383";
        let fresh = "a 10.0.0.1:1@11 master,fail - 0 0 1 disconnected\n\
                     c 10.0.0.1:3@13,name myself,master - 0 0 4 connected 0-8190 [8192-<-b]\n\
                     d 10.0.0.1:4@14 slave b 0 0 2 connected\n\
                     b 10.0.0.1:2@12 master - 0 0 5 connected 8191 8192-16383 [8192->-c]";
        for answers in [[stale, fresh], [fresh, stale]] {
            let routes = routes(&answers).unwrap();
            let owners = [0, 8190, 8191, 8192, 16383].map(|slot| routes.server(slot).cloned());
            assert_eq!(owners, [at(3), at(3), at(2), at(2), at(2)].map(Some));
        }
    }

    #[test]
    fn what_no_server_says_is_not_read() {
        let no_claims = "a :0@0 master,noaddr - 0 0 1 disconnected 0-5\n\
                         b 10.0.0.1:1@11 slave a 0 0 1 connected\nc\n\n\
                         d 10.0.0.1:1@11 master - 0 0 1 connected 16384 x-y";
        assert_eq!(routes(&[no_claims]), None);
        assert_eq!(routes(&[]), None);
        for text in ["MOVED", "MOVED 16384 h:1", "MOVED 1 h", "MOVED 1 h:0", "ASK 1 h:1"] {
            assert_eq!(read_moved(&at(1), text), None, "{text}");
        }
    }

    #[test]
    fn a_moved_slot_is_right_until_the_next_look() {
        let mut routes = routes(&["a :1@11 myself,master - 0 0 1 connected 0-16383"]).unwrap();
        assert_eq!(routes.server(7), Some(&at(1)));
        let (slot, address) = read_moved(&at(1), "MOVED 7 ::1:9").unwrap();
        routes.moved(slot, address);
        assert_eq!(routes.server(7), Some(&Address { host: "::1".into(), port: 9 }));
        assert_eq!(routes.server(8), Some(&at(1)));
        assert_eq!(read_moved(&at(1), "MOVED 7 :9"), Some((7, at(9))), "the host that said it");
    }

    #[test]
    fn the_sentinel_with_the_highest_configuration_epoch_is_right() {
        let topology = Topology::Sentinel { sentinels: vec![at(1)], service: "m".into() };
        let says = |port: &str, config_epoch: &str| {
            let words = ["name", "m", "ip", "10.0.0.1", "port", port, "config-epoch", config_epoch];
            topology.read(&at(1), Value::Array(words.map(Value::from).to_vec())).unwrap()
        };
        let reports = vec![says("5", "1"), says("6", "3"), says("7", "2")];
        assert_eq!(Routes::of(reports), Some(Routes::One(at(6))));
        assert_eq!(topology.read(&at(1), Value::Array(vec!["name".into()])), None);
    }
}
