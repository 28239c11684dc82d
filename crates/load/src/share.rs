//! A load that several hosts do together: one of them, the head, creates the tables, each copies
//! its own part of the rows, and the head does all that comes after them. What is done stands in
//! the ledger, step by step, so that the number of hosts shapes neither the rows nor what an
//! interrupted load knows of itself.

use drive::hosts::HostShare;

use super::steps::{Step, Terms};

/// The copies of one host: of every table a run of its units, cut where a COPY begins. What is
/// copied at once is dealt in turn, so that the first host has not all that is small.
pub(super) fn copies_of(terms: &Terms<'_>, share: HostShare) -> Vec<Step> {
    let mut own = Vec::new();
    for (number, copies) in terms.copies_by_relation().into_iter().enumerate() {
        let count = copies.len();
        let is_own = |at: usize| host_of(at, count, number, share.hosts) == share.host;
        own.extend(copies.into_iter().enumerate().filter(|(at, _)| is_own(*at)).map(|(_, it)| it));
    }
    own
}

/// Which host does a relation's copy: the one whose run of units has its middle.
fn host_of(at: usize, count: usize, relation: usize, hosts: u32) -> u32 {
    let all = hosts as usize;
    let host = if count == 1 { relation % all } else { (2 * at + 1) * all / (2 * count) };
    u32::try_from(host).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_is_of_one_host_and_hosts_have_runs_of_about_the_same_length() {
        for hosts in [1, 2, 3, 7, 100] {
            for count in [1, 2, 3, 45, 300] {
                let owners: Vec<u32> = (0..count).map(|at| host_of(at, count, 0, hosts)).collect();
                assert!(owners.iter().all(|host| *host < hosts), "{owners:?}");
                assert!(owners.is_sorted(), "{owners:?}");
                let most = count.div_ceil(hosts as usize);
                for host in 0..hosts {
                    let own = owners.iter().filter(|owner| **owner == host).count();
                    assert!(own <= most, "host {host} of {hosts} has {own} of {count}");
                }
            }
        }
    }

    #[test]
    fn tables_that_are_copied_at_once_are_dealt_in_turn() {
        let owners: Vec<u32> = (0..5).map(|relation| host_of(0, 1, relation, 3)).collect();
        assert_eq!(owners, [0, 1, 2, 0, 1]);
    }
}
