//! The body of an order, member by member: the table that clients read in the API's documentation.
//!
//! Limits that the contract leaves open are chosen wide: names 255 characters, codes 64, amounts 15 digits before the point.

use crate::schema::{DecimalRule, Kind, Member, Object, Sign};

/// The most lines of an order.
pub const MAX_LINES: usize = 1_000;

/// The kinds of lines; the default comes first.
pub const LINE_KINDS: &[&str] = &["product", "shipping", "fee", "discount", "gift_card", "deposit", "rounding"];

/// The kinds of lines whose price, total and taxes may be negative.
pub(super) const NEGATIVE_KINDS: &[&str] = &["discount", "gift_card", "rounding"];

/// An amount of money, of any sign and up to 6 decimals: what is narrower depends on other members (line kind, currency).
pub(super) const AMOUNT: DecimalRule = DecimalRule::new(15, 6, Sign::Any);

const CODE: Kind = Kind::Text { min: 0, max: 64 };
const NAME: Kind = Kind::Text { min: 0, max: 255 };
const ID: Kind = Kind::Text { min: 1, max: 64 };
const LINE_ID: &Kind = &ID;

/// The body of `orders.create` and `orders.put`.
pub static ORDER: Object = Object {
    name: "Order",
    members: &[
        Member::optional("customerId", ID, "The shop's id of the customer; required unless `customer` is given."),
        Member::optional("customer", Kind::Object(&CUSTOMER), "Who orders; required unless `customerId` is given."),
        Member::required(
            "currency",
            Kind::Currency,
            "The currency of all amounts: ISO 4217, either case in, upper case out.",
        ),
        Member::required(
            "items",
            Kind::List { of: &Kind::Object(&LINE), min: 1, max: MAX_LINES },
            "The lines. Their order is content; lines never merge.",
        ),
        Member::default(
            "pricesIncludeTax",
            Kind::Bool,
            "false",
            "Whether `unitPrice` and `total` of the lines include tax.",
        ),
        Member::optional(
            "totals",
            Kind::Object(&TOTALS),
            "The sender's totals: kept, never recomputed, and checked against the lines where every line has a `total`.",
        ),
        Member::optional(
            "discounts",
            Kind::List { of: &Kind::Object(&DISCOUNT), min: 0, max: 1_000 },
            "Discounts, for information: the totals of the lines are after discounts.",
        ),
        Member::optional("billingAddress", Kind::Object(&ADDRESS), "Where the invoice goes."),
        Member::optional("shippingAddress", Kind::Object(&ADDRESS), "Where the goods go."),
        Member::optional("payment", Kind::Object(&PAYMENT), "How the customer pays."),
        Member::optional("channel", ID, "The shop or sales channel within the tenant, such as `woocommerce/sk-eshop`."),
        Member::optional(
            "externalOrderId",
            ID,
            "The shop's technical id of the order: unique for ever within tenant and channel.",
        ),
        Member::optional("externalOrderNumber", ID, "The order number that people see."),
        Member::optional("placedAt", Kind::Instant, "When the customer placed the order."),
        Member::optional("note", Kind::Text { min: 0, max: 5_000 }, "The customer's note; markup in it is text."),
        Member::optional("extensions", Kind::Bag { max_bytes: 16 * 1024 }, "Data of the sender's own; kept as sent."),
    ],
};

static CUSTOMER: Object = Object {
    name: "Customer",
    members: &[
        Member::optional("guest", Kind::Bool, "Whether the customer has no account in the shop."),
        Member::optional("name", NAME, "The full name, where it is not split."),
        Member::optional("firstName", NAME, "The given name."),
        Member::optional("lastName", NAME, "The family name."),
        Member::optional("email", Kind::Text { min: 0, max: 320 }, "The e-mail address."),
        Member::optional("phone", CODE, "The telephone number."),
        Member::optional("locale", CODE, "The language of messages to the customer, such as `sk-SK`."),
        Member::optional("business", Kind::Object(&BUSINESS), "The firm, where a firm orders."),
    ],
};

static BUSINESS: Object = Object {
    name: "Business",
    members: &[
        Member::optional("name", NAME, "The registered name."),
        Member::optional("registrationNumber", CODE, "The company number, as text: leading zeros stay."),
        Member::optional("taxNumber", CODE, "The tax number, as text; no checksum is enforced."),
        Member::optional("vatNumber", CODE, "The VAT number with its country prefix; no checksum is enforced."),
    ],
};

static LINE: Object = Object {
    name: "OrderLine",
    members: &[
        Member::optional("lineId", ID, "The shop's id of the line, unique in the order."),
        Member::optional("parentLineId", ID, "The `lineId` of the line that this one belongs to, such as a set."),
        Member::default("kind", Kind::Token(LINE_KINDS), "product", "What the line is."),
        Member::optional(
            "sku",
            Kind::Text { min: 1, max: 255 },
            "The stock keeping unit, in any script; may repeat. A product line needs `sku` or `name`.",
        ),
        Member::optional("name", Kind::Text { min: 0, max: 500 }, "What the customer saw."),
        Member::required(
            "qty",
            Kind::Decimal(DecimalRule::new(9, 6, Sign::Positive)),
            "The quantity: at most 9 digits before and 6 after the point.",
        ),
        Member::default("unit", Kind::Unit, "C62", "The unit of `qty`: a UN/ECE code, such as C62 (piece) or KGM."),
        Member::default(
            "priceBaseQty",
            Kind::Decimal(DecimalRule::new(9, 6, Sign::Positive)),
            "1",
            "The quantity that `unitPrice` is the price of.",
        ),
        Member::optional("unitPrice", Kind::Decimal(AMOUNT), "The price of `priceBaseQty` units."),
        Member::optional("total", Kind::Decimal(AMOUNT), "The total of the line after discounts."),
        Member::optional("taxes", Kind::List { of: &Kind::Object(&TAX), min: 0, max: 50 }, "The taxes on the line."),
        Member::optional(
            "attributes",
            Kind::List { of: &Kind::Object(&ATTRIBUTE), min: 0, max: 50 },
            "What the customer chose or wrote for this line, such as an engraving.",
        ),
    ],
};

static TAX: Object = Object {
    name: "Tax",
    members: &[
        Member::optional(
            "rate",
            Kind::Decimal(DecimalRule::new(3, 6, Sign::NotNegative)),
            "The rate in percent: 23 is 23 %.",
        ),
        Member::optional("amount", Kind::Decimal(AMOUNT), "The amount of tax on the line."),
        Member::optional("category", CODE, "The tax category, such as the code list UN/ECE 5305."),
    ],
};

static ATTRIBUTE: Object = Object {
    name: "Attribute",
    members: &[
        Member::required("name", Kind::Text { min: 1, max: 255 }, "The name of the attribute."),
        Member::required("value", Kind::Text { min: 0, max: 5_000 }, "Its value, as text."),
    ],
};

static TOTALS: Object = Object {
    name: "Totals",
    members: &[
        Member::optional("net", Kind::Decimal(AMOUNT), "The total without tax."),
        Member::optional("tax", Kind::Decimal(AMOUNT), "The total tax."),
        Member::optional("gross", Kind::Decimal(AMOUNT), "What the customer pays."),
        Member::optional("rounding", Kind::Decimal(AMOUNT), "The rounding that is part of `gross`; absent is 0."),
    ],
};

static DISCOUNT: Object = Object {
    name: "Discount",
    members: &[
        Member::optional("code", NAME, "The coupon's code."),
        Member::optional("kind", CODE, "What kind of discount it is, in the shop's words."),
        Member::optional("amount", Kind::Decimal(AMOUNT), "The discount, in the sense of `pricesIncludeTax`."),
        Member::optional("taxAmount", Kind::Decimal(AMOUNT), "The tax on the discount."),
        Member::optional(
            "appliesTo",
            Kind::List { of: LINE_ID, min: 0, max: MAX_LINES },
            "The `lineId`s of the lines that it lowered.",
        ),
    ],
};

static ADDRESS: Object = Object {
    name: "Address",
    members: &[
        Member::optional("firstName", NAME, "The given name."),
        Member::optional("lastName", NAME, "The family name."),
        Member::optional("company", NAME, "The firm."),
        Member::optional(
            "lines",
            Kind::List { of: &Kind::Text { min: 0, max: 255 }, min: 1, max: 4 },
            "Street, house, entrance: one to four lines.",
        ),
        Member::optional("city", NAME, "The city."),
        Member::optional("postalCode", CODE, "The postal code, as text: leading zeros and blanks stay."),
        Member::optional("region", NAME, "The state, province or county."),
        Member::optional("country", Kind::Country, "The country: ISO 3166-1 alpha-2."),
        Member::optional("pickupPointId", CODE, "The carrier's id of the pick-up point."),
    ],
};

static PAYMENT: Object = Object {
    name: "OrderPayment",
    members: &[
        Member::optional("method", NAME, "The shop's name of the method, such as `cod`."),
        Member::optional("status", CODE, "The shop's word for where the payment stands, such as `pending`."),
        Member::optional("reference", NAME, "The payment provider's reference."),
        Member::optional("amount", Kind::Decimal(AMOUNT), "The amount of the payment."),
    ],
};
