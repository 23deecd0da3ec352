//! How a tenant's orders become sales: the settings of a connection to Tryton, a JSON object in its row. Everything but the
//! web shop has a default.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::erp::Failure;
use crate::money::exact;
use crate::order::LINE_KINDS;

/// The settings of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Options {
    /// The id of the web shop whose sales they are. With `web_id` it is unique in Tryton, which is what makes one order one
    /// sale; without it nothing would.
    pub web_shop: u32,
    /// The id of the company that sells; that of the web shop where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company: Option<u32>,
    /// How far a sale is driven.
    #[serde(default)]
    pub target: Target,
    /// What becomes of payments.
    #[serde(default)]
    pub payments: Payments,
    /// Units by their UN/ECE code: the id of Tryton's unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, u32>,
    /// Taxes by their rate in percent: the id of Tryton's tax.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taxes: BTreeMap<String, u32>,
    /// Products for lines that are no goods, by the kind of line: the code of Tryton's product. Without one such a line has a
    /// description and no product.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skus: BTreeMap<String, String>,
}

/// How far a sale is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// It stays a draft, for a person.
    Draft,
    /// It is a quotation, with a number.
    Quotation,
    /// It is confirmed; Tryton processes it.
    #[default]
    Confirmed,
}

/// What becomes of payments. A sale has no place for them: Tryton books them where its accounting is set up for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payments {
    /// A note at the sale tells people of each.
    #[default]
    Note,
    /// Tryton is told nothing of them.
    Ignore,
}

impl Options {
    /// The settings with nothing but the web shop.
    #[must_use]
    pub fn of_web_shop(web_shop: u32) -> Options {
        Options {
            web_shop,
            company: None,
            target: Target::default(),
            payments: Payments::default(),
            units: BTreeMap::new(),
            taxes: BTreeMap::new(),
            skus: BTreeMap::new(),
        }
    }

    /// The settings as a connection keeps them.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("maps of text and numbers always have a JSON form")
    }

    /// Reads the settings of a connection.
    pub(super) fn read(json: &str) -> Result<Options, Failure> {
        let wrong = |text: String| Failure::Misconfigured(format!("the options of the connection: {text}"));
        let options: Options = serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
        let ids = options.units.iter().chain(&options.taxes).map(|(name, id)| (name.as_str(), *id));
        let ids = ids.chain([("webShop", options.web_shop)]).chain(options.company.map(|id| ("company", id)));
        if let Some((name, _)) = ids.into_iter().find(|(_, id)| *id == 0) {
            return Err(wrong(format!("'{name}' is an id in Tryton, 1 or more, and not 0")));
        }
        options.check_rates().map_err(wrong)?;
        if let Some((kind, _)) = options.skus.iter().find(|(_, sku)| sku.trim().is_empty()) {
            return Err(wrong(format!("the product for '{kind}' is a code of Tryton's, and not empty")));
        }
        let may_have_one = |kind: &str| kind != "product" && LINE_KINDS.contains(&kind);
        if let Some(kind) = options.skus.keys().find(|kind| !may_have_one(kind)) {
            return Err(wrong(format!("'{kind}' is no kind of line that takes a product of its own")));
        }
        Ok(options)
    }

    /// Each rate is a decimal, and there once, however it is written.
    fn check_rates(&self) -> Result<(), String> {
        let mut known = BTreeMap::new();
        for rate in self.taxes.keys() {
            let exact =
                exact(rate).ok_or_else(|| format!("'{rate}' is no rate in percent; write it like 19 or 5.5"))?;
            if let Some(before) = known.insert(exact, rate) {
                return Err(format!("the rate {before} is there twice, also as {rate}; one tax belongs to it"));
            }
        }
        Ok(())
    }
}
