//! Faults of a body: what is wrong, where, and what would be right.

use serde::Serialize;

/// One fault of a body. It never repeats the value that was sent, which may be personal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Where: a JSON Pointer (RFC 6901) into the body as it was sent; `""` is the whole body.
    pub pointer: String,
    /// Which rule is broken: one of the stable codes in [`code`].
    pub code: &'static str,
    /// What is allowed, in words for a person.
    pub message: String,
}

/// The codes of faults. Clients branch on them, so they are few and never renamed.
pub mod code {
    /// A member that must be there is absent or `null`.
    pub const REQUIRED: &str = "Required";
    /// A member that is not in the table.
    pub const UNKNOWN_MEMBER: &str = "UnknownMember";
    /// A value of another JSON type.
    pub const WRONG_TYPE: &str = "WrongType";
    /// Text with too few characters.
    pub const TOO_SHORT: &str = "TooShort";
    /// Text with too many characters.
    pub const TOO_LONG: &str = "TooLong";
    /// Text that is none of the values listed.
    pub const NOT_ONE_OF: &str = "NotOneOf";
    /// Neither a number nor text of the form `-?[0-9]+(\.[0-9]+)?`.
    pub const NOT_A_DECIMAL: &str = "NotADecimal";
    /// A decimal with too many digits before or after the point.
    pub const TOO_MANY_DIGITS: &str = "TooManyDigits";
    /// A decimal below the least that is allowed.
    pub const TOO_SMALL: &str = "TooSmall";
    /// Not a currency code of ISO 4217 that has a minor unit.
    pub const NOT_A_CURRENCY: &str = "NotACurrency";
    /// Not a country code of ISO 3166-1 alpha-2.
    pub const NOT_A_COUNTRY: &str = "NotACountry";
    /// Not a date and time of RFC 3339 with an offset.
    pub const NOT_AN_INSTANT: &str = "NotAnInstant";
    /// Not a unit of measure code.
    pub const NOT_A_UNIT: &str = "NotAUnit";
    /// An array with too few elements.
    pub const TOO_FEW: &str = "TooFew";
    /// An array with too many elements.
    pub const TOO_MANY: &str = "TooMany";
    /// An open bag with too many bytes.
    pub const TOO_LARGE: &str = "TooLarge";
    /// A value that must be unique stands twice.
    pub const NOT_UNIQUE: &str = "NotUnique";
    /// A line id that no line of the body has.
    pub const UNKNOWN_LINE: &str = "UnknownLine";
    /// A line that is, through its parents, its own parent.
    pub const CYCLIC_PARENT: &str = "CyclicParent";
    /// A total that differs from what the lines add up to.
    pub const TOTALS_DIFFER: &str = "TotalsDiffer";
    /// A moment that is over by the clock of the database.
    pub const NOT_IN_THE_FUTURE: &str = "NotInTheFuture";
    /// A quantity of which less is available.
    pub const NOT_AVAILABLE: &str = "NotAvailable";
    /// A SKU of which nobody has said what is on hand.
    pub const UNKNOWN_SKU: &str = "UnknownSku";
    /// More faults were found than are listed.
    pub const MORE_FAULTS: &str = "MoreFaults";

    /// Every code, for the documentation.
    pub const ALL: [&str; 24] = [
        REQUIRED,
        UNKNOWN_MEMBER,
        WRONG_TYPE,
        TOO_SHORT,
        TOO_LONG,
        NOT_ONE_OF,
        NOT_A_DECIMAL,
        TOO_MANY_DIGITS,
        TOO_SMALL,
        NOT_A_CURRENCY,
        NOT_A_COUNTRY,
        NOT_AN_INSTANT,
        NOT_A_UNIT,
        TOO_FEW,
        TOO_MANY,
        TOO_LARGE,
        NOT_UNIQUE,
        UNKNOWN_LINE,
        CYCLIC_PARENT,
        TOTALS_DIFFER,
        NOT_IN_THE_FUTURE,
        NOT_AVAILABLE,
        UNKNOWN_SKU,
        MORE_FAULTS,
    ];
}

/// Faults as they are found, at most [`Faults::LISTED`] of them, so that a bad body of a megabyte has a short answer.
#[derive(Debug, Default)]
pub struct Faults {
    listed: Vec<Fault>,
    unlisted: usize,
}

impl Faults {
    /// The most faults that are listed one by one.
    pub const LISTED: usize = 100;

    /// Adds a fault; past the limit it is only counted.
    pub fn add(&mut self, pointer: impl Into<String>, code: &'static str, message: impl Into<String>) {
        if self.listed.len() < Self::LISTED {
            self.listed.push(Fault { pointer: pointer.into(), code, message: message.into() });
        } else {
            self.unlisted += 1;
        }
    }

    /// All faults, in the order found. When there were more than are listed, the last says how many.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Fault> {
        if self.unlisted > 0 {
            self.listed.push(Fault {
                pointer: String::new(),
                code: code::MORE_FAULTS,
                message: format!("{} more faults were found; correct these first.", self.unlisted),
            });
        }
        self.listed
    }
}
