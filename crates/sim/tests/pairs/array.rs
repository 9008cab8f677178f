//! Covering arrays: few rows that hold every combination of values of any two, or three, factors.

/// The factors to combine.
pub struct Factors<'a> {
    /// How many values each factor has.
    pub sizes: &'a [usize],
    /// Whether a value of one factor can't stand beside a value of another: both by factor and value,
    /// the smaller factor first. Whatever stands in a row, each other factor has a value that can stand beside it.
    pub forbids: &'a dyn Fn((usize, usize), (usize, usize)) -> bool,
}

/// The value of each factor.
pub type Row = Vec<usize>;

impl Factors<'_> {
    fn allows(&self, one: (usize, usize), other: (usize, usize)) -> bool {
        let (first, second) = if one.0 < other.0 { (one, other) } else { (other, one) };
        !(self.forbids)(first, second)
    }

    fn allow_all(&self, items: &[(usize, usize)]) -> bool {
        let pairs = items.iter().enumerate();
        pairs.into_iter().all(|(at, one)| items[at + 1..].iter().all(|two| self.allows(*one, *two)))
    }

    /// Every combination of values of `strength` factors that may stand together.
    fn combinations(&self, strength: usize) -> Vec<Vec<(usize, usize)>> {
        let mut all = vec![Vec::new()];
        for _ in 0..strength {
            all = all.iter().flat_map(|begun| self.longer_by_one(begun)).collect();
        }
        all
    }

    fn longer_by_one(&self, begun: &[(usize, usize)]) -> Vec<Vec<(usize, usize)>> {
        let from = begun.last().map_or(0, |(factor, _)| factor + 1);
        let items = (from..self.sizes.len())
            .flat_map(|factor| (0..self.sizes[factor]).map(move |value| (factor, value)));
        let longer = items.map(|item| [begun, &[item]].concat());
        longer.filter(|items| self.allow_all(items)).collect()
    }
}

/// The combinations that no row holds yet, by the numbers of their items.
struct Missing {
    /// The number of the first value of each factor.
    firsts: Vec<usize>,
    items: usize,
    is_missing: Vec<bool>,
}

impl Missing {
    fn new(factors: &Factors<'_>, combinations: &[Vec<(usize, usize)>]) -> Self {
        let mut firsts = vec![0];
        for size in factors.sizes {
            firsts.push(firsts[firsts.len() - 1] + size);
        }
        let items = firsts[firsts.len() - 1];
        let mut missing = Missing { firsts, items, is_missing: vec![false; items.pow(3)] };
        for combination in combinations {
            let index = missing.index(combination);
            missing.is_missing[index] = true;
        }
        missing
    }

    fn index(&self, items: &[(usize, usize)]) -> usize {
        items
            .iter()
            .fold(0, |index, (factor, value)| index * self.items + self.firsts[*factor] + value)
    }

    fn contains(&self, items: &[(usize, usize)]) -> bool {
        self.is_missing[self.index(items)]
    }

    /// How many missing combinations `item` completes with `chosen`, which are in ascending order of
    /// factors.
    fn completed_by(
        &self,
        item: (usize, usize),
        chosen: &[(usize, usize)],
        strength: usize,
    ) -> usize {
        let mut sorted = [(0, 0); 3];
        let mut holds = |others: &[(usize, usize)]| {
            let items = &mut sorted[..=others.len()];
            items[..others.len()].copy_from_slice(others);
            items[others.len()] = item;
            items.sort_unstable();
            self.contains(items)
        };
        let mut count = 0;
        for (at, one) in chosen.iter().enumerate() {
            if strength == 2 {
                count += usize::from(holds(&[*one]));
                continue;
            }
            count += chosen[at + 1..].iter().filter(|two| holds(&[*one, **two])).count();
        }
        count
    }
}

/// Rows that hold every combination of values of any `strength` factors, 2 or 3, that may stand
/// together. The same factors give the same rows.
pub fn covering(factors: &Factors<'_>, strength: usize) -> Vec<Row> {
    let combinations = factors.combinations(strength);
    let mut missing = Missing::new(factors, &combinations);
    let mut rows = Vec::new();
    for seed in &combinations {
        if !missing.contains(seed) {
            continue;
        }
        let row = row_around(seed, factors, &missing, strength, rows.len());
        let items: Vec<(usize, usize)> = row.iter().copied().enumerate().collect();
        for at in 0..items.len() {
            clear(&mut missing, &items[..at], items[at], strength);
        }
        rows.push(row);
    }
    rows
}

/// Notes the combinations of `item` with those before it as held.
fn clear(missing: &mut Missing, before: &[(usize, usize)], item: (usize, usize), strength: usize) {
    for (at, one) in before.iter().enumerate() {
        if strength == 2 {
            let index = missing.index(&[*one, item]);
            missing.is_missing[index] = false;
            continue;
        }
        for two in &before[at + 1..] {
            let index = missing.index(&[*one, *two, item]);
            missing.is_missing[index] = false;
        }
    }
}

/// A row with the items of `seed`, each other value the one that completes most.
fn row_around(
    seed: &[(usize, usize)],
    factors: &Factors<'_>,
    missing: &Missing,
    strength: usize,
    turn: usize,
) -> Row {
    let mut chosen = seed.to_vec();
    for factor in 0..factors.sizes.len() {
        if chosen.iter().any(|(known, _)| *known == factor) {
            continue;
        }
        // Of values that complete as many, another one for each row.
        let size = factors.sizes[factor];
        let values = (0..size).map(|value| (factor, (value + turn) % size));
        let fitting = values.filter(|item| chosen.iter().all(|one| factors.allows(*one, *item)));
        let best = fitting.max_by_key(|item| missing.completed_by(*item, &chosen, strength));
        chosen.push(best.unwrap_or((factor, 0)));
        chosen.sort_unstable();
    }
    chosen.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn a_covering_array_holds_every_combination_and_no_forbidden_one() {
    let sizes = [3, 2, 4, 2, 3, 2];
    let forbids = |one, other| one == (0, 2) && other == (2, 3) || one == (1, 1) && other == (5, 1);
    let factors = Factors { sizes: &sizes, forbids: &forbids };
    for strength in [2, 3] {
        let rows = covering(&factors, strength);
        let holds = |row: &Row, items: &[(usize, usize)]| {
            items.iter().all(|(factor, value)| row[*factor] == *value)
        };
        let combinations = factors.combinations(strength);
        let all_held = combinations.iter().all(|items| rows.iter().any(|row| holds(row, items)));
        assert!(all_held, "a combination of {strength} is in no row");
        let forbidden = |row: &Row| holds(row, &[(0, 2), (2, 3)]) || holds(row, &[(1, 1), (5, 1)]);
        assert!(!rows.iter().any(forbidden));
        let most = sizes.iter().product::<usize>();
        assert!(rows.len() < most / 3, "{} rows for {strength}", rows.len());
        assert_eq!(rows, covering(&factors, strength));
    }
}
