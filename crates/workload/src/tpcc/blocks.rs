//! One TPC-C over several servers: each holds a block of the warehouses, with the table of items
//! whole. What is remote is drawn among the warehouses of the same block, since no transaction
//! reaches two servers.

use super::spec::{BLOCKS_MAX, Blocks, Home, SpecError, TpccSpec};

impl TpccSpec {
    /// Warehouses of one block; without blocks all.
    #[must_use]
    pub fn block_size(&self) -> i32 {
        self.blocks.map_or(self.warehouses, |blocks| self.warehouses / blocks.count)
    }

    /// How many warehouses the database does not hold that come before its own.
    #[must_use]
    pub fn warehouses_before(&self) -> i32 {
        self.blocks.and_then(|blocks| blocks.held).map_or(0, |held| held * self.block_size())
    }

    /// How many warehouses the database holds.
    #[must_use]
    pub fn warehouses_held(&self) -> i32 {
        match self.blocks {
            Some(Blocks { held: Some(_), .. }) => self.block_size(),
            _ => self.warehouses,
        }
    }

    /// How probable it is that a remote warehouse, drawn among all, lies in another block.
    #[must_use]
    pub fn share_across(&self) -> f64 {
        let (all, own) = (f64::from(self.warehouses), f64::from(self.block_size()));
        if self.warehouses > 1 { (all - own) / (all - 1.0) } else { 0.0 }
    }

    /// The number of the `number`-th terminal of a block: terminals go round its warehouses, and
    /// have the numbers that terminals of the same warehouses have where there are no blocks.
    #[must_use]
    pub(super) fn terminal_of_block(&self, block: u32, number: u32) -> u32 {
        let [all, own] = [self.warehouses, self.block_size()].map(i32::unsigned_abs);
        let round = (number / own).wrapping_mul(all);
        round.wrapping_add(block.wrapping_mul(own)).wrapping_add(number % own)
    }

    /// Refuses blocks that there are not, and what does not go together with them.
    pub(super) fn check_blocks(&self) -> Result<(), SpecError> {
        let Some(Blocks { count, held }) = self.blocks else { return Ok(()) };
        if !(1..=BLOCKS_MAX).contains(&count) {
            let fact = format!("blocks.count is {count}, allowed is 1 to {BLOCKS_MAX}");
            return Err(SpecError::plain(fact));
        }
        if self.warehouses % count != 0 {
            let fact = format!(
                "warehouses is {}, which {count} blocks cannot share evenly",
                self.warehouses
            );
            return Err(SpecError::new(fact, "Every block has the same number of them."));
        }
        if let Some(held) = held
            && !(0..count).contains(&held)
        {
            let fact = format!("blocks.held is {held}, allowed is 0 to {}", count - 1);
            return Err(SpecError::plain(fact));
        }
        if self.partitions.is_some() {
            let fact = "blocks and partitions are both given".to_owned();
            return Err(SpecError::new(fact, "Divide the warehouses by one of them."));
        }
        if self.home == Home::Random {
            let fact = "blocks are given, but home is random".to_owned();
            return Err(SpecError::new(fact, "With home fixed each terminal keeps to its server."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(warehouses: i32, count: i32) -> TpccSpec {
        let value = json!({"kind": "tpcc", "warehouses": warehouses, "blocks": {"count": count}});
        TpccSpec::from_json(&value).expect("a specification")
    }

    #[test]
    fn blocks_together_have_the_terminals_of_the_whole() {
        let spec = spec(12, 3);
        let mut all: Vec<u32> = (0..3)
            .flat_map(|block| (0..8).map(move |number| (block, number)))
            .map(|(block, number)| {
                let terminal = spec.terminal_of_block(block, number);
                let home = i32::try_from(terminal % 12).expect("few");
                assert_eq!(home / spec.block_size(), i32::try_from(block).expect("few"));
                terminal
            })
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..24).collect::<Vec<u32>>());
    }

    #[test]
    fn a_block_holds_its_own_warehouses() {
        let held = |held| {
            let blocks = json!({"count": 4, "held": held});
            let value = json!({"kind": "tpcc", "warehouses": 8, "blocks": blocks});
            let spec = TpccSpec::from_json(&value).expect("a specification");
            (spec.warehouses_before(), spec.warehouses_held())
        };
        assert_eq!((held(0), held(3)), ((0, 2), (6, 2)));
        let whole = spec(8, 4);
        assert_eq!((whole.warehouses_before(), whole.warehouses_held()), (0, 8));
        assert!((whole.share_across() - 6.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_divided_is_refused_with_its_values() {
        for (change, part) in [
            (json!({"blocks": {"count": 0}}), "blocks.count is 0, allowed is 1 to 1000"),
            (json!({"blocks": {"count": 3}}), "warehouses is 8, which 3 blocks cannot share"),
            (json!({"blocks": {"count": 2, "held": 2}}), "blocks.held is 2, allowed is 0 to 1"),
            (
                json!({"blocks": {"count": 2}, "partitions": {"by": "hash", "count": 2}}),
                "blocks and partitions are both given",
            ),
            (json!({"blocks": {"count": 2}, "home": "random"}), "home is random"),
            (json!({"blocks": {"number": 2}}), "unknown key number"),
        ] {
            let mut value = json!({"kind": "tpcc", "warehouses": 8});
            for (key, changed) in change.as_object().expect("an object") {
                value[key] = changed.clone();
            }
            let fact = TpccSpec::from_json(&value).expect_err("refused").fact;
            assert!(fact.contains(part), "{value}: {fact}");
        }
    }
}
