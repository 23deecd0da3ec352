//! The table of a body, as data: one source for fingerprint, validation and stored form.
//!
//! A command describes its body once, as a `static` [`Object`] that reads like the table in the documentation. From it
//! come [`Object::normal`] (what is compared), [`Object::faults`] (what is wrong, all at once) and [`Object::complete`]
//! (what is stored and given back). The edge makes the `OpenAPI` schema of the same table.

mod country;
mod decimal;
mod fault;
mod instant;
mod normal;
mod validate;

pub use country::is_country;
pub use decimal::{DecimalRule, Sign};
pub use fault::{Fault, Faults, code};
pub use instant::in_utc;

/// The members that an object may have, in the order in which they are stored and given back.
#[derive(Debug)]
pub struct Object {
    /// What one such object is called in the contract document, such as `Address`.
    pub name: &'static str,
    /// The members; any other is refused, so that nothing is silently dropped.
    pub members: &'static [Member],
}

/// One member of an object.
#[derive(Debug)]
pub struct Member {
    /// The name in the JSON text.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// Whether it may be left out, and what that means.
    pub presence: Presence,
    /// What it means, for the reader of the API's documentation.
    pub doc: &'static str,
}

/// Whether a member may be left out. For every member `null` is the same as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It must be there.
    Required,
    /// It may be absent. An empty array is then the same as absent; `""` and `{}` are content.
    Optional,
    /// Absent means this value, written as normalised text (`true` or `false` for a [`Kind::Bool`]).
    Default(&'static str),
}

/// What values a member takes. Lengths of text are in characters (Unicode scalar values), not bytes.
#[derive(Debug)]
pub enum Kind {
    /// Text, compared and stored as sent: no trimming, no Unicode normalisation.
    Text {
        /// The fewest characters.
        min: usize,
        /// The most characters.
        max: usize,
    },
    /// One of these texts, in exactly this case.
    Token(&'static [&'static str]),
    /// An exact decimal, as a number or as text; stored as text without trailing zeros.
    Decimal(DecimalRule),
    /// An ISO 4217 currency code, in either case; stored in upper case.
    Currency,
    /// An ISO 3166-1 alpha-2 country code, in either case; stored in upper case.
    Country,
    /// An RFC 3339 date and time with offset; stored in UTC.
    Instant,
    /// A unit of measure of UN/ECE Recommendation 20 or 21: one to three capital letters and digits.
    Unit,
    /// `true` or `false`.
    Bool,
    /// An array whose order is content.
    List {
        /// What every element is.
        of: &'static Kind,
        /// The fewest elements; an optional list that is empty counts as absent, whatever this says.
        min: usize,
        /// The most elements.
        max: usize,
    },
    /// An object with a table of its own.
    Object(&'static Object),
    /// An object of any content, kept as sent: in it `null` is content, and `2` is not `"2"`.
    Bag {
        /// The most bytes of its canonical text.
        max_bytes: usize,
    },
}

impl Object {
    /// The member called `name`.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&'static Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Member {
    /// Whether `value` is the empty array of an optional list, which is the same as no array.
    pub(crate) fn counts_as_absent(&self, value: &crate::json::Json) -> bool {
        matches!((&self.kind, self.presence), (Kind::List { .. }, Presence::Optional))
            && value.as_array().is_some_and(<[_]>::is_empty)
    }

    /// A member that must be there.
    #[must_use]
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Member {
        Member { name, kind, presence: Presence::Required, doc }
    }

    /// A member that may be absent.
    #[must_use]
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Member {
        Member { name, kind, presence: Presence::Optional, doc }
    }

    /// A member whose absence means `value`, written as normalised text.
    #[must_use]
    pub const fn default(name: &'static str, kind: Kind, value: &'static str, doc: &'static str) -> Member {
        Member { name, kind, presence: Presence::Default(value), doc }
    }
}
