//! A run's load, shared out over hosts. Every host is told the whole and which part of it is its
//! own; so the parts together are the whole, and each request is the same whatever their number.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{error::RunError, schedule::arrivals::Terminals};

/// Most hosts of a run.
pub const HOSTS_MAX: u32 = 1_000;

/// Which part of the load a host has: connections, terminals, with them their arrivals, and the
/// room for requests that wait are dealt round robin.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct HostShare {
    /// Which of the hosts it is, from 0.
    #[schemars(range(max = HOSTS_MAX))]
    pub host: u32,
    /// How many there are.
    #[schemars(range(min = 1, max = HOSTS_MAX))]
    pub hosts: u32,
}

impl Default for HostShare {
    /// One host has it all.
    fn default() -> Self {
        Self { host: 0, hosts: 1 }
    }
}

impl HostShare {
    /// How many of so many things are this host's.
    #[must_use]
    pub fn of(self, all: usize) -> usize {
        let [host, hosts] = [self.host, self.hosts].map(|number| number as usize);
        all.saturating_sub(host).div_ceil(hosts)
    }

    /// How many of so many terminals are this host's.
    #[must_use]
    pub fn of_terminals(self, all: u32) -> u32 {
        all.saturating_sub(self.host).div_ceil(self.hosts)
    }

    /// Terminals of one of the host's threads.
    #[must_use]
    pub fn terminals(self, thread: u32, threads: u32, all: u32) -> Terminals {
        Terminals { first: self.host + self.hosts * thread, stride: self.hosts * threads, all }
    }

    /// Whether it does what is done once for all of them.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.host == 0
    }

    /// Whether there are others.
    #[must_use]
    pub fn is_part(self) -> bool {
        self.hosts > 1
    }

    /// Refuses a share that there is not, or in which a host would have nothing to do.
    ///
    /// # Errors
    ///
    /// The first value that is wrong.
    pub fn check(self, connections: usize, terminals: u32) -> Result<(), RunError> {
        let Self { host, hosts } = self;
        if !(1..=HOSTS_MAX).contains(&hosts) {
            let fact = format!("share.hosts is {hosts}, allowed are 1 to {HOSTS_MAX}");
            return Err(RunError::spec(fact, None));
        }
        if host >= hosts {
            let fact = format!("share.host is {host}, allowed are 0 to {}", hosts - 1);
            return Err(RunError::spec(fact, None));
        }
        for (what, all) in [("connections", connections), ("terminals", terminals as usize)] {
            if all < hosts as usize {
                return Err(RunError::spec(
                    format!("{what} are {all}, share.hosts is {hosts}"),
                    Some("Every host takes one at least: raise them, or take fewer hosts."),
                ));
            }
        }
        Ok(())
    }
}

/// When the warm-up begins.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    /// As soon as all connections stand.
    #[default]
    AtOnce,
    /// At an instant that is told once they do.
    WhenTold,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_that_there_is_not_is_refused() {
        let refused = |host, hosts, connections, terminals| {
            HostShare { host, hosts }.check(connections, terminals).expect_err("refused").fact
        };
        assert!(refused(0, 0, 9, 9).contains("share.hosts is 0, allowed are 1 to 1000"));
        assert!(refused(3, 3, 9, 9).contains("share.host is 3, allowed are 0 to 2"));
        assert!(refused(0, 3, 2, 9).contains("connections are 2, share.hosts is 3"));
        assert!(refused(0, 3, 9, 2).contains("terminals are 2, share.hosts is 3"));
        assert!(HostShare { host: 2, hosts: 3 }.check(3, 3).is_ok());
    }

    proptest! {
        /// Each terminal and each connection is had once, whatever the threads of each host.
        #[test]
        fn shares_together_are_the_whole(
            threads in prop::collection::vec(1_u32..5, 1..8),
            more in 0_u32..200,
            connections in 8_usize..300,
        ) {
            let hosts = u32::try_from(threads.len()).expect("a few");
            let all = threads.iter().max().expect("one") * hosts + more;
            let mut had = vec![0; all as usize];
            let mut sum = 0;
            for (host, &threads) in (0..hosts).zip(&threads) {
                let share = HostShare { host, hosts };
                let mut own = 0;
                for thread in 0..threads {
                    let terminals = share.terminals(thread, threads, all);
                    let count = u32::try_from(terminals.count()).expect("few");
                    for position in 0..count {
                        let id = terminals.id(position);
                        prop_assert_eq!(terminals.position(id), Some(position));
                        had[id as usize] += 1;
                    }
                    own += count;
                }
                prop_assert_eq!(own, share.of_terminals(all));
                sum += share.of(connections);
            }
            prop_assert!(had.iter().all(|times| *times == 1), "{:?}", had);
            prop_assert_eq!(sum, connections);
        }
    }
}
