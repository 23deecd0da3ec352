//! The database's clock as an expression, so that what decides over time is compared where the rows are.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::Timestamp;
use diesel::sqlite::Sqlite;

/// Now, in UTC. On PostgreSQL that is the moment when the transaction began, on SQLite when the statement did, to the
/// millisecond; Diesel's own `now` knows only whole seconds there, so that a key could outlive its time.
#[derive(Clone, Copy, Debug, QueryId, diesel::expression::ValidGrouping)]
pub struct Clock;

impl Expression for Clock {
    type SqlType = Timestamp;
}

impl<Source> AppearsOnTable<Source> for Clock {}

impl<Source> SelectableExpression<Source> for Clock {}

impl QueryFragment<Pg> for Clock {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')");
        Ok(())
    }
}

impl QueryFragment<Sqlite> for Clock {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("strftime('%Y-%m-%d %H:%M:%f', 'now')");
        Ok(())
    }
}
