//! Last names (clause 4.3.2.3): three syllables for the three digits of a number.

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// How many names there are.
pub const NAMES: usize = 1000;

/// All last names, by number.
#[derive(Clone, Debug)]
pub struct LastNames(Vec<String>);

impl Default for LastNames {
    fn default() -> Self {
        let name = |number: usize| {
            [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit]).concat()
        };
        Self((0..NAMES).map(name).collect())
    }
}

impl LastNames {
    /// The name of a number from 0 to 999.
    ///
    /// # Panics
    ///
    /// If the number is not in that range: a bug of the caller.
    #[must_use]
    pub fn get(&self, number: i32) -> &str {
        let name = usize::try_from(number).ok().and_then(|number| self.0.get(number));
        assert!(name.is_some(), "{number} is not the number of a last name");
        name.map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_the_digits() {
        let names = LastNames::default();
        // The text's own example is 371.
        assert_eq!(names.get(371), "PRICALLYOUGHT");
        assert_eq!(names.get(0), "BARBARBAR");
        assert_eq!(names.get(999), "EINGEINGEING");
        let longest = (0..1000).map(|n| names.get(n).len()).max();
        assert_eq!(longest, Some(15), "varchar(16) holds every name");
    }
}
