//! The harness proves itself: what the other tests rely on is tested here.

use serde_json::json;

use crate::harness::database::{Database, Dialect};

/// The same on both databases: own rows, own file or database, one form of the values.
fn a_database_belongs_to_one_test(dialect: Dialect) {
    let mine = Database::empty(dialect);
    let other = Database::empty(dialect);
    mine.execute("CREATE TABLE marks (id TEXT PRIMARY KEY, number BIGINT, remark TEXT)");
    mine.execute("INSERT INTO marks VALUES ('ľ', 9007199254740993, NULL), ('z', -1, '')");
    other.execute("CREATE TABLE marks (id TEXT PRIMARY KEY)");

    assert_eq!(mine.count("marks"), 2);
    assert_eq!(other.count("marks"), 0);
    assert_eq!(
        mine.rows("SELECT id, number, remark FROM marks ORDER BY number DESC"),
        [
            json!({"id": "ľ", "number": 9_007_199_254_740_993_i64, "remark": null}),
            json!({"id": "z", "number": -1, "remark": ""})
        ]
    );
}

#[test]
fn a_sqlite_database_belongs_to_one_test() {
    a_database_belongs_to_one_test(Dialect::Sqlite);
}

#[test]
fn a_postgres_database_belongs_to_one_test() {
    a_database_belongs_to_one_test(Dialect::Postgres);
}
