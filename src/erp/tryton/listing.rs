//! The sales of the web shop, page by page, for the comparison with our orders.

use super::{SALE, Session, state, value};
use crate::db;
use crate::erp::{Failure, Listed, Listing};
use crate::json::Json;

/// The sales of one page. A sale tells the ids of its lines, so that a page of the largest orders still fits an answer.
const PAGE: usize = 50;

impl Session<'_> {
    /// The sales that Tryton made since a moment, by its own clock, in the order of their ids. `after` is the last id of the
    /// page before.
    pub(super) async fn list(&self, since: db::Instant, after: Option<&str>) -> Result<Listing, Failure> {
        let after = after.map_or(Ok(0), str::parse::<i64>);
        let after = after.map_err(|_| Failure::Misconfigured("this is no place in a list of the ERP's".to_owned()))?;
        let domain = value::list([
            value::condition("web_shop", "=", value::integer(i64::from(self.options.web_shop))),
            value::condition("create_date", ">=", value::instant(since)),
            value::condition("id", ">", value::integer(after)),
        ]);
        let rows = self.rest.page(SALE, domain, super::FIELDS, Some(PAGE)).await?;
        let last = rows.last().and_then(|row| value::id(row, &["id"]));
        let next = last.filter(|_| rows.len() == PAGE).map(|id| id.to_string());
        Ok(Listing::Page { orders: rows.iter().filter_map(listed).collect(), next })
    }
}

fn listed(sale: &Json) -> Option<Listed> {
    Some(Listed {
        reference: sale.text("web_id")?.to_owned(),
        erp_reference: super::sale::name(sale),
        currency: value::at(sale, &["currency", "code"]).and_then(Json::as_text).map(str::to_owned),
        total: value::decimal(sale, &["total_amount"]),
        lines: value::at(sale, &["lines"]).and_then(Json::as_array).map(<[Json]>::len),
        cancelled: state(sale) == "cancelled",
    })
}
