//! The settings of a connection to Tryton on the command line.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use order_service::erp::tryton::options::{Options, Payments, Target};

use crate::cli::Failure;

#[derive(Args)]
#[command(next_help_heading = "Tryton")]
pub(super) struct Settings {
    /// The id of the web shop in Tryton whose sales the orders become.
    #[arg(long, value_name = "ID", required_if_eq("kind", "tryton"), value_parser = clap::value_parser!(u32).range(1..))]
    web_shop: Option<u32>,
    /// The id of the company that sells. Default: that of the web shop.
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u32).range(1..))]
    company: Option<u32>,
    /// How far a sale is driven. Default: confirmed.
    #[arg(long, value_enum)]
    target: Option<WantedTarget>,
    /// What becomes of payments: a note at the sale, or nothing. Default: note.
    #[arg(long, value_enum)]
    payments: Option<WantedPayments>,
    /// A unit of Tryton for a UN/ECE code, such as KGM=2; may be repeated. Default: pieces in the unit of the product, common
    /// units by their symbol.
    #[arg(long = "unit", value_name = "CODE=ID")]
    units: Vec<Pair<u32>>,
    /// A tax of Tryton for a rate in percent, such as 19=1; may be repeated. Default: the only tax on sales with this rate.
    #[arg(long = "tax", value_name = "RATE=ID")]
    taxes: Vec<Pair<u32>>,
    /// The code of the product for shipping lines. Default, as for the other kinds of lines: a line with a description and no
    /// product.
    #[arg(long, value_name = "CODE")]
    shipping_sku: Option<String>,
    /// The code of the product for fees.
    #[arg(long, value_name = "CODE")]
    fee_sku: Option<String>,
    /// The code of the product for discounts.
    #[arg(long, value_name = "CODE")]
    discount_sku: Option<String>,
    /// The code of the product for gift cards that pay.
    #[arg(long, value_name = "CODE")]
    gift_card_sku: Option<String>,
    /// The code of the product for deposits.
    #[arg(long, value_name = "CODE")]
    deposit_sku: Option<String>,
    /// The code of the product for rounding.
    #[arg(long, value_name = "CODE")]
    rounding_sku: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WantedTarget {
    Draft,
    Quotation,
    Confirmed,
}

#[derive(Clone, Copy, ValueEnum)]
enum WantedPayments {
    Note,
    Ignore,
}

/// A name and what it stands for.
#[derive(Clone)]
struct Pair<T>(String, T);

impl<T: FromStr> FromStr for Pair<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let pair = pair.and_then(|(name, value)| Some(Pair(name.to_owned(), value.parse().ok()?)));
        pair.ok_or_else(|| "write it as NAME=ID, such as 19=1".to_owned())
    }
}

impl Settings {
    /// The names of the options that were given.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--web-shop", self.web_shop.is_some()),
            ("--company", self.company.is_some()),
            ("--target", self.target.is_some()),
            ("--payments", self.payments.is_some()),
            ("--unit", !self.units.is_empty()),
            ("--tax", !self.taxes.is_empty()),
            ("--shipping-sku", self.shipping_sku.is_some()),
            ("--fee-sku", self.fee_sku.is_some()),
            ("--discount-sku", self.discount_sku.is_some()),
            ("--gift-card-sku", self.gift_card_sku.is_some()),
            ("--deposit-sku", self.deposit_sku.is_some()),
            ("--rounding-sku", self.rounding_sku.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// The options as the connection keeps them.
    pub(super) fn options(&self) -> Result<String, Failure> {
        let web_shop = self.web_shop.ok_or("--web-shop names the web shop in Tryton")?;
        let skus = [
            ("shipping", &self.shipping_sku),
            ("fee", &self.fee_sku),
            ("discount", &self.discount_sku),
            ("gift_card", &self.gift_card_sku),
            ("deposit", &self.deposit_sku),
            ("rounding", &self.rounding_sku),
        ];
        let skus = skus.into_iter().filter_map(|(kind, sku)| Some((kind.to_owned(), sku.clone()?))).collect();
        let target = match self.target {
            Some(WantedTarget::Draft) => Target::Draft,
            Some(WantedTarget::Quotation) => Target::Quotation,
            Some(WantedTarget::Confirmed) => Target::Confirmed,
            None => Target::default(),
        };
        let payments = match self.payments {
            Some(WantedPayments::Note) => Payments::Note,
            Some(WantedPayments::Ignore) => Payments::Ignore,
            None => Payments::default(),
        };
        let (units, taxes) = (map("--unit", &self.units)?, map("--tax", &self.taxes)?);
        Ok(Options { web_shop, company: self.company, target, payments, units, taxes, skus }.to_json())
    }
}

/// The pairs by their names. Of two that have one name nobody could say which holds.
fn map(option: &str, pairs: &[Pair<u32>]) -> Result<BTreeMap<String, u32>, Failure> {
    let mut map = BTreeMap::new();
    for Pair(name, id) in pairs {
        if map.insert(name.clone(), *id).is_some() {
            return Err(format!("{option} names '{name}' twice; leave one of them out").into());
        }
    }
    Ok(map)
}
