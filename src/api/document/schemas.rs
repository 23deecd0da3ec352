//! JSON schemas of the contract document. The bodies of commands come from their tables ([`Object`]), in two forms: as they
//! may be sent, and as they are stored and given back.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{KnownFormat, Ref, RefOr, Schema};

use crate::schema::{DecimalRule, Kind, Member, Object, Presence, Sign};

/// The component schemas, as they are met.
#[derive(Default)]
pub struct Schemas(BTreeMap<String, RefOr<Schema>>);

/// Whether a table is shown as clients may send it, or as the service gives it back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Sent,
    Stored,
}

impl Schemas {
    /// Everything that was met.
    pub(super) fn into_components(self) -> BTreeMap<String, RefOr<Schema>> {
        self.0
    }

    /// A reference to the component `name`, which `make` makes when it is met for the first time.
    pub fn named(&mut self, name: &str, make: impl FnOnce(&mut Schemas) -> Schema) -> Ref {
        if !self.0.contains_key(name) {
            let schema = make(self);
            self.0.insert(name.to_owned(), schema.into());
        }
        Ref::from_schema_name(name)
    }

    /// A reference to the component of a Rust type that is serialised.
    pub fn of<T: ToSchema>(&mut self) -> Ref {
        let mut met = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut met);
        self.0.extend(met);
        Ref::from_schema_name(T::name())
    }

    /// A reference to `table` as clients may send it: the component `<name>Input`.
    pub fn sent(&mut self, table: &Object) -> Ref {
        self.named(&format!("{}Input", table.name), |schemas| schemas.table(table, Form::Sent).build().into())
    }

    /// A reference to `table` as the service gives it back: the component `<name>`.
    pub fn stored(&mut self, table: &Object) -> Ref {
        self.named(table.name, |schemas| schemas.table(table, Form::Stored).build().into())
    }

    /// Adds to `object` the members of `table` as the service gives them back, except those named in `left_out`.
    pub fn stored_members(&mut self, object: ObjectBuilder, table: &Object, left_out: &[&str]) -> ObjectBuilder {
        let members = table.members.iter().filter(|member| !left_out.contains(&member.name));
        members.fold(object, |object, member| self.member(object, member, Form::Stored))
    }

    fn table(&mut self, table: &Object, form: Form) -> ObjectBuilder {
        let object = ObjectBuilder::new().schema_type(Type::Object);
        let object = match form {
            // Nothing that was sent is silently dropped: what is not known is refused.
            Form::Sent => object.additional_properties(Some(AdditionalProperties::FreeForm(false))),
            // A later release may add members to its answers.
            Form::Stored => object,
        };
        table.members.iter().fold(object, |object, member| self.member(object, member, form))
    }

    fn member(&mut self, object: ObjectBuilder, member: &Member, form: Form) -> ObjectBuilder {
        // `null` is the same as absent, in what is sent.
        let nullable = form == Form::Sent && member.presence != Presence::Required;
        let shape = Shape { form, nullable, optional: member.presence == Presence::Optional, doc: Some(member.doc) };
        let default = match member.presence {
            Presence::Default(text) if form == Form::Sent => Some(default_value(&member.kind, text)),
            _ => None,
        };
        let object = object.property(member.name, self.kind(&member.kind, shape, default));
        let always = match form {
            Form::Sent => member.presence == Presence::Required,
            Form::Stored => member.presence != Presence::Optional,
        };
        if always { object.required(member.name) } else { object }
    }

    fn kind(&mut self, kind: &Kind, shape: Shape, default: Option<Value>) -> RefOr<Schema> {
        match kind {
            Kind::List { of, min, max } => {
                let element = Shape { nullable: false, optional: false, doc: None, ..shape };
                let list = ArrayBuilder::new()
                    .schema_type(shape.typed(Type::Array))
                    .description(shape.doc)
                    .items(self.kind(of, element, None))
                    // An empty optional array counts as absent, whatever its least length.
                    .min_items(Some(*min).filter(|min| *min > 0 && !shape.optional))
                    .max_items(Some(*max));
                Schema::Array(list.build()).into()
            }
            Kind::Object(table) => {
                let reference = if shape.form == Form::Sent { self.sent(table) } else { self.stored(table) };
                shape.reference(reference)
            }
            Kind::Bag { max_bytes } => {
                let doc =
                    format!("{} At most {max_bytes} bytes of JSON without blanks.", shape.doc.unwrap_or_default());
                ObjectBuilder::new()
                    .schema_type(shape.typed(Type::Object))
                    .description(Some(doc))
                    .additional_properties(Some(AdditionalProperties::FreeForm(true)))
                    .into()
            }
            _ => scalar(kind, shape).default(default).into(),
        }
    }
}

/// How one value is shown.
#[derive(Clone, Copy)]
struct Shape {
    form: Form,
    nullable: bool,
    optional: bool,
    doc: Option<&'static str>,
}

impl Shape {
    fn typed(self, of: Type) -> SchemaType {
        self.one_of_types(vec![of])
    }

    fn one_of_types(self, mut types: Vec<Type>) -> SchemaType {
        if self.nullable {
            types.push(Type::Null);
        }
        if let [one] = types.as_slice() { one.clone().into() } else { SchemaType::Array(types) }
    }

    fn reference(self, mut reference: Ref) -> RefOr<Schema> {
        if self.nullable {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            return OneOfBuilder::new().description(self.doc).item(reference).item(null).into();
        }
        self.doc.unwrap_or_default().clone_into(&mut reference.description);
        reference.into()
    }
}

fn scalar(kind: &Kind, shape: Shape) -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(shape.typed(Type::String)).description(shape.doc);
    let sent = shape.form == Form::Sent;
    match kind {
        Kind::Text { min, max } => text.min_length(Some(*min).filter(|min| *min > 0)).max_length(Some(*max)),
        Kind::Token(tokens) => {
            let null = shape.nullable.then_some(Value::Null);
            text.enum_values(Some(tokens.iter().map(|token| Value::from(*token)).chain(null)))
        }
        Kind::Decimal(rule) if sent => {
            decimal(text.schema_type(shape.one_of_types(vec![Type::Number, Type::String])), *rule)
        }
        Kind::Decimal(_) => text.pattern(Some(STORED_DECIMAL)),
        Kind::Currency => text.pattern(Some(if sent { "^[A-Za-z]{3}$" } else { "^[A-Z]{3}$" })),
        Kind::Country => text.pattern(Some(if sent { "^[A-Za-z]{2}$" } else { "^[A-Z]{2}$" })),
        Kind::Instant => text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))),
        Kind::Unit => text.pattern(Some("^[A-Z0-9]{1,3}$")),
        Kind::Bool => text.schema_type(shape.typed(Type::Boolean)),
        Kind::List { .. } | Kind::Object(_) | Kind::Bag { .. } => unreachable!("kinds that hold others are no scalars"),
    }
}

/// A decimal as it is stored and given back: text without trailing zeros.
const STORED_DECIMAL: &str = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?$";

/// The limits of a decimal: for text as a pattern, in which leading and trailing zeros do not count; for numbers as bounds.
fn decimal(schema: ObjectBuilder, rule: DecimalRule) -> ObjectBuilder {
    let DecimalRule { whole_digits, fraction_digits, sign } = rule;
    let bound = 10_i64.pow(u32::try_from(whole_digits).unwrap_or(u32::MAX));
    let fraction = match fraction_digits {
        0 => r"(?:\.0+)?".to_owned(),
        digits => format!(r"(?:\.[0-9]{{1,{digits}}}0*)?"),
    };
    let schema = schema.exclusive_maximum(Some(bound));
    match sign {
        Sign::Positive => {
            let more = whole_digits.saturating_sub(1);
            // Below one there has to be a digit that is not zero among those that count.
            let below_one = match fraction_digits {
                0 => String::new(),
                digits => format!(r"|0\.[0-9]{{0,{}}}[1-9]0*", digits - 1),
            };
            schema
                .exclusive_minimum(Some(0))
                .pattern(Some(format!("^0*(?:[1-9][0-9]{{0,{more}}}{fraction}{below_one})$")))
        }
        Sign::NotNegative => schema.minimum(Some(0)).pattern(Some(format!("^0*[0-9]{{1,{whole_digits}}}{fraction}$"))),
        Sign::Any => {
            schema.exclusive_minimum(Some(-bound)).pattern(Some(format!("^-?0*[0-9]{{1,{whole_digits}}}{fraction}$")))
        }
    }
}

fn default_value(kind: &Kind, text: &str) -> Value {
    match kind {
        Kind::Bool => Value::Bool(text == "true"),
        _ => Value::from(text),
    }
}

/// Text with a meaning.
#[must_use]
pub fn text(doc: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(doc))
}

/// Text or `null`.
#[must_use]
pub fn text_or_null(doc: &str) -> ObjectBuilder {
    text(doc).schema_type(SchemaType::Array(vec![Type::String, Type::Null]))
}

/// One of a few words.
#[must_use]
pub fn one_of(words: &[&str], doc: &str) -> ObjectBuilder {
    text(doc).enum_values(Some(words.iter().copied()))
}

/// A moment, RFC 3339.
#[must_use]
pub fn instant(doc: &str) -> ObjectBuilder {
    text(doc).format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

/// A decimal as text without trailing zeros.
#[must_use]
pub fn decimal_text(doc: &str) -> ObjectBuilder {
    text(doc).pattern(Some(STORED_DECIMAL))
}

/// A whole number from 0.
#[must_use]
pub fn whole_number(doc: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(doc))
}

/// Paths of this service by their names.
#[must_use]
pub fn links(names: &[&str]) -> ObjectBuilder {
    let path = || text("An absolute path of this service.").pattern(Some("^/"));
    let links = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("Where to go from here: absolute paths of this service."))
        .additional_properties(Some(Schema::from(path().build())));
    names.iter().fold(links, |links, name| links.property(*name, path()).required(*name))
}
