//! Checks of the catalog's database: reachable, its schema, its clock.

use reprise_encoders::with_causes;
use reprise_server::catalog::{self, CatalogError, DatabaseFacts};

use super::check::Check;

const NAME: &str = "database";
const SCHEMA: &str = "schema";
const CLOCK: &str = "clock";

/// Milliseconds between two clocks that are worth a word.
const CLOCKS_DIFFER: i64 = 5_000;

/// The checks, and the facts behind them if the database answers.
pub(super) async fn checks(url: &str) -> (Vec<Check>, Option<DatabaseFacts>) {
    match catalog::facts(url).await {
        Ok(None) => (vec![Check::ok(NAME, "SQLite; not there yet, the first start makes it")], None),
        Ok(Some(facts)) => (of_facts(&facts), Some(facts)),
        Err(error) => (vec![unreachable(&error)], None),
    }
}

fn unreachable(error: &CatalogError) -> Check {
    let advice = "start it, or mend --database-url: sqlite:PATH or postgres://USER:PASSWORD@HOST/NAME";
    Check::problem(NAME, with_causes(error), advice)
}

fn of_facts(facts: &DatabaseFacts) -> Vec<Check> {
    let found = format!("{} {}", facts.kind, facts.version);
    let database = match facts.takes_writes {
        true => Check::ok(NAME, found),
        false => {
            let found = format!("{found} takes no writes");
            Check::problem(
                NAME,
                found,
                "name the primary server, or give the file's rights to the server's user",
            )
        }
    };
    let clock = match facts.kind {
        "postgres" => clocks(facts.clock_ahead_ms),
        _ => clock(facts.clock_ahead_ms),
    };
    vec![database, schema(facts), clock]
}

fn schema(facts: &DatabaseFacts) -> Check {
    let newest = facts.newest_schema;
    match facts.schema {
        None => Check::ok(SCHEMA, "none yet; the first start makes it"),
        Some(schema) if schema == newest => Check::ok(SCHEMA, format!("version {schema}")),
        Some(schema) if schema < newest => {
            let found = format!("version {schema}; this binary migrates it to {newest}");
            Check::warning(SCHEMA, found, "back up before you start: older binaries then refuse it")
        }
        Some(schema) => {
            let found = format!("version {schema} is newer than this binary, which knows {newest}");
            Check::problem(SCHEMA, found, "start the newer binary, or restore a backup")
        }
    }
}

/// The only clock, that of this machine, beside the newest row.
fn clock(ahead_ms: i64) -> Check {
    if ahead_ms < CLOCKS_DIFFER {
        return Check::ok(CLOCK, "no row lies in the future");
    }
    let found = format!("the newest row lies {:.1} s in the future", ahead_ms as f64 / 1000.0);
    Check::warning(CLOCK, found, "set the clock by NTP: it was ahead before, or is behind now")
}

/// The database's clock beside that of this machine.
fn clocks(ahead_ms: i64) -> Check {
    let seconds = ahead_ms as f64 / 1000.0;
    let found = format!("the database's clock is {:.1} s {}", seconds.abs(), direction(ahead_ms));
    match ahead_ms.saturating_abs() < CLOCKS_DIFFER {
        true => Check::ok(CLOCK, found),
        false => {
            Check::warning(CLOCK, found, "set both by NTP: keys and links would expire at the wrong time")
        }
    }
}

fn direction(ahead_ms: i64) -> &'static str {
    if ahead_ms < 0 { "behind this one" } else { "ahead of this one" }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    fn facts(schema: Option<i64>, clock_ahead_ms: i64) -> DatabaseFacts {
        DatabaseFacts {
            kind: "postgres",
            version: "17.2".to_owned(),
            schema,
            newest_schema: 9,
            takes_writes: true,
            clock_ahead_ms,
            pgvector: None,
        }
    }

    /// Expects these states of database, schema and clock.
    #[track_caller]
    fn check(facts: &DatabaseFacts, expected: [State; 3]) {
        let states: Vec<State> = of_facts(facts).into_iter().map(|check| check.state).collect();
        assert_eq!(states, expected, "{facts:?}");
    }

    #[test]
    fn schemas_and_clocks_are_compared() {
        use State::{Ok, Problem, Warning};
        check(&facts(None, 0), [Ok, Ok, Ok]);
        check(&facts(Some(9), -4_000), [Ok, Ok, Ok]);
        check(&facts(Some(8), 6_000), [Ok, Warning, Warning]);
        check(&facts(Some(10), -6_000), [Ok, Problem, Warning]);
        check(&DatabaseFacts { takes_writes: false, ..facts(Some(9), 0) }, [Problem, Ok, Ok]);
        let sqlite = |ahead_ms| DatabaseFacts { kind: "sqlite", ..facts(Some(9), ahead_ms) };
        check(&sqlite(0), [Ok, Ok, Ok]);
        check(&sqlite(6_000), [Ok, Ok, Warning]);
    }
}
