//! What the service takes as JSON: one unambiguous value, exactly, or nothing.

use order_service::json::{Json, MAX_LEVELS, Malformed, Number, parse};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Far above what a linear parser needs in a debug build on a busy machine, far below what a quadratic one takes.
const LINEAR: Duration = Duration::from_secs(10);

fn malformed(bytes: &[u8]) -> Malformed {
    match parse(bytes) {
        Err(malformed) => malformed,
        Ok(value) => panic!("{:?} was taken as {value}", String::from_utf8_lossy(bytes)),
    }
}

fn value(text: &str) -> Json {
    parse(text.as_bytes()).unwrap_or_else(|malformed| panic!("{text} was refused: {malformed}"))
}

/// Any JSON value of a few levels, numbers within what a binary float holds exactly.
pub fn any_json() -> impl Strategy<Value = Json> {
    let text = prop_oneof!["[a-c]{0,2}", "\\PC{0,6}", "[\"\\\\\u{1}-\u{1f}\u{7f}\u{2028}\u{e000}\u{10000}]{0,4}"];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<u32>().prop_map(|number| Json::Number(Number::from(number))),
        text.clone().prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let members = prop::collection::btree_map(text.clone(), inner.clone(), 0..5);
        let shuffled = members.prop_map(|members| members.into_iter().collect::<Vec<_>>()).prop_shuffle();
        prop_oneof![prop::collection::vec(inner, 0..5).prop_map(Json::Array), shuffled.prop_map(Json::Object)]
    })
}

/// Bytes that are not one JSON value, the line and column of the fault, and what the message must say.
const MALFORMED: &[(&[u8], (usize, usize), &str)] = &[
    (b"", (1, 1), "the body is empty"),
    (b" \r\n\t", (2, 2), "the body is empty"),
    (b"\xef\xbb\xbf{}", (1, 1), "byte order mark"),
    (b"{\"a\":\"\xff\"}", (1, 7), "not valid UTF-8"),
    (b"{\"a\":\"\xc0\x80\"}", (1, 7), "not valid UTF-8"),
    (b"{\"a\":\"\xed\xa0\x80\"}", (1, 7), "not valid UTF-8"),
    (b"{\"a\":\"\xf4\x90\x80\x80\"}", (1, 7), "not valid UTF-8"),
    (b"\xff\xfe{\x00}\x00", (1, 1), "not valid UTF-8"),
    (b"{} {}", (1, 4), "something follows"),
    (b"{}\0", (1, 3), "something follows"),
    (b"nullx", (1, 5), "something follows"),
    (b"{", (1, 2), "ends too early"),
    (b"{\"a\"", (1, 5), "ends too early"),
    (b"{\"a\":", (1, 6), "ends too early"),
    (b"{\"a\":1", (1, 7), "ends too early"),
    (b"{\"a\":1,", (1, 8), "ends too early"),
    (b"[1,", (1, 4), "ends too early"),
    (b"\"abc", (1, 1), "no closing quote"),
    (b"\"abc\\", (1, 1), "no closing quote"),
    (b"\"abc\\\"", (1, 1), "no closing quote"),
    (b"{\"a\":1,}", (1, 8), "a member name in double quotes"),
    (b"{a:1}", (1, 2), "a member name in double quotes"),
    (b"{'a':1}", (1, 2), "a member name in double quotes"),
    (b"{1:1}", (1, 2), "a member name in double quotes"),
    (b"{\"a\" 1}", (1, 6), "a colon"),
    (b"{\"a\":1 \"b\":2}", (1, 8), "a comma or the closing brace"),
    (b"[1 2]", (1, 4), "a comma or the closing bracket"),
    (b"[1,]", (1, 4), "a value"),
    (b"[,1]", (1, 2), "a value"),
    (b"]", (1, 1), "a value"),
    (b"[1}", (1, 3), "a comma or the closing bracket"),
    (b"{\"a\":/* no */1}", (1, 6), "a value"),
    (b"nul", (1, 1), "a value"),
    (b"True", (1, 1), "a value"),
    (b"undefined", (1, 1), "a value"),
    (b"\xc2\xa0{}", (1, 1), "a value"),
    (b"NaN", (1, 1), "NaN and Infinity are not JSON"),
    (b"[Infinity]", (1, 2), "NaN and Infinity are not JSON"),
    (b"-Infinity", (1, 1), "not a JSON number"),
    (b"-", (1, 1), "not a JSON number"),
    (b"+1", (1, 1), "a value"),
    (b"01", (1, 1), "not a JSON number"),
    (b"-01", (1, 1), "not a JSON number"),
    (b"1.", (1, 1), "not a JSON number"),
    (b".5", (1, 1), "a value"),
    (b"1e", (1, 1), "not a JSON number"),
    (b"1e+", (1, 1), "not a JSON number"),
    (b"1e5.3", (1, 1), "not a JSON number"),
    (b"1.2.3", (1, 1), "not a JSON number"),
    (b"1-2", (1, 1), "not a JSON number"),
    (b"0x10", (1, 2), "something follows"),
    (b"\"a\nb\"", (1, 3), "a control character"),
    (b"\"a\tb\"", (1, 3), "a control character"),
    (b"\"a\0b\"", (1, 3), "a control character"),
    (b"\"\\x41\"", (1, 1), "bad escape"),
    (b"\"\\u12\"", (1, 1), "bad escape"),
    (b"\"\\u12G4\"", (1, 1), "bad escape"),
    (b"\"\\\n\"", (1, 1), "bad escape"),
    (b"\"\\ud800\"", (1, 1), "half of a surrogate pair"),
    (b"\"\\udc00\"", (1, 1), "half of a surrogate pair"),
    (b"\"\\ud800\\u0041\"", (1, 1), "half of a surrogate pair"),
    (b"\"\\ude00\\ud83d\"", (1, 1), "half of a surrogate pair"),
    (b"{\"\\ud800\":1}", (1, 2), "half of a surrogate pair"),
    (b"\"a\\u0000b\"", (1, 1), "U+0000"),
    (b"{\"a\\u0000\":1}", (1, 2), "U+0000"),
    (b"{\n  \"name\": \"\xc4\xbd\", \"x\": ?\n}", (2, 21), "a value"),
];

#[test]
fn what_is_not_one_json_value_is_refused_with_its_place_and_a_cure() {
    for (bytes, place, problem) in MALFORMED {
        let shown = String::from_utf8_lossy(bytes);
        let malformed = malformed(bytes);
        assert!(malformed.problem.contains(problem), "{shown:?}: {malformed}");
        assert_eq!((malformed.line, malformed.column), *place, "{shown:?}: {malformed}");
    }
}

#[test]
fn a_member_name_twice_in_one_object_is_malformed_at_any_depth() {
    for text in [
        r#"{"currency":"EUR","currency":"CZK","items":[]}"#,
        r#"{"items":[{"qty":1,"sku":"A","qty":2}]}"#,
        r#"{"extensions":{"a":{"b":[{"c":null,"c":null}]}}}"#,
        r#"{"a":1,"\u0061":1}"#,
        r#"{"":1,"":1}"#,
    ] {
        assert!(malformed(text.as_bytes()).problem.contains("twice"), "{text}");
    }
    let message = malformed(br#"{"items":[{"qty":1,"sku":"A","qty":2}]}"#).to_string();
    assert_eq!(message, "line 1, column 30: the member name \"qty\" stands twice in one object; send each member once");
    assert_eq!(value(r#"[{"a":1},{"a":{"a":2}}]"#).canonical(), r#"[{"a":1},{"a":{"a":2}}]"#);
}

#[test]
fn a_message_repeats_at_most_the_start_of_a_name() {
    let name = "x".repeat(100_000);
    let message = malformed(format!(r#"{{"{name}":1,"{name}":2}}"#).as_bytes()).to_string();
    assert!(message.len() < 250, "{} bytes", message.len());
}

#[test]
fn a_backslash_before_u0000_as_text_is_kept() {
    let note = value(r#"{"note":"a\\u0000b"}"#);
    assert_eq!(note.text("note"), Some(r"a\u0000b"));
    assert_eq!(note.canonical(), r#"{"note":"a\\u0000b"}"#);
}

#[test]
fn levels_beyond_the_limit_are_refused_without_a_deep_stack() {
    let nested = |open: &str, close: &str, levels: usize| open.repeat(levels) + "1" + &close.repeat(levels);
    let limit = MAX_LEVELS;
    assert!(parse(nested("[", "]", limit).as_bytes()).is_ok());
    assert!(parse(nested("{\"a\":", "}", limit).as_bytes()).is_ok());
    for levels in [limit + 1, 10_000, 500_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let text = nested(open, close, levels);
            assert!(malformed(text.as_bytes()).problem.contains("64 levels"), "{levels} times {open}");
            assert!(malformed(open.repeat(levels).as_bytes()).problem.contains("64 levels"), "cut off {open}");
        }
    }
}

#[test]
fn a_mebibyte_of_anything_takes_linear_time() {
    const SIZE: usize = 1 << 20;
    let fill = |unit: &str| unit.repeat(SIZE / unit.len());
    let members: Vec<String> = (0..SIZE / 10).map(|index| format!("\"{index:05}\":1")).collect();
    let deep = "[".repeat(63) + &fill("[1],") + "[]" + &"]".repeat(63);
    let bodies = [
        fill("["),
        fill("{\"a\":"),
        format!("[{}1]", fill("1,")),
        format!("[{}[]]", fill("[],")),
        format!("{{{}}}", members.join(",")),
        format!("\"{}\"", fill("a")),
        format!("\"{}\"", fill("\\u0161")),
        format!("\"{}\"", fill("\\\"")),
        fill("\n"),
        fill("9"),
        format!("0.{}1", fill("0")),
        format!("1e{}", fill("9")),
        deep,
    ];
    for body in bodies {
        let start = Instant::now();
        let answer = parse(body.as_bytes()).map(|value| value.canonical().len());
        let taken = start.elapsed();
        assert!(taken < LINEAR, "{body:.20}…: {taken:?}, {answer:?}");
    }
}

#[test]
fn every_spelling_of_a_number_is_one_exact_decimal() {
    let cases = [
        ("2", "2"),
        ("2.0", "2"),
        ("2e0", "2"),
        ("20e-1", "2"),
        ("0.2E+1", "2"),
        ("0.0002e4", "2"),
        ("0", "0"),
        ("-0", "0"),
        ("-0.000", "0"),
        ("0e999999999999999999999", "0"),
        ("-0e-999999999999999999999", "0"),
        ("-2.50", "-2.5"),
        ("1e3", "1000"),
        ("1.5e-7", "0.00000015"),
        ("123456e-3", "123.456"),
        ("120e1", "1200"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740992", "9007199254740992"),
        ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
        ("1e21", "1000000000000000000000"),
    ];
    for (literal, canonical) in cases {
        assert_eq!(value(literal).canonical(), canonical, "{literal}");
    }
}

#[test]
fn a_number_that_would_fill_pages_is_malformed_and_costs_nothing() {
    for literal in
        ["1e1000", "1e999999999", "-1e-1000", "1e-999999999", "1e99999999999999999999", "1e-99999999999999999999"]
    {
        assert!(malformed(literal.as_bytes()).problem.contains("more than 1000 digits"), "{literal}");
    }
    assert_eq!(value("1e999").canonical().len(), 1_000);
    assert_eq!(value("1e-999").canonical().len(), "0.".len() + 999);
    assert_eq!(value(&format!("1.{}", "0".repeat(5_000))).canonical(), "1");
    assert!(parse("9".repeat(1_001).as_bytes()).is_err());
}

/// With `serde_json`'s feature `arbitrary_precision` on, a number travels through serde as an object with a member of a
/// private name, and `RawValue` does likewise; code that goes through serde then takes such an object for a number.
/// Our numbers never pass through serde: whatever the feature is, such an object stays an object and `300` a number.
/// `cargo test --features serde_json/arbitrary_precision` runs all vectors with the feature on.
#[test]
fn numbers_do_not_depend_on_a_feature_of_serde_json() {
    assert_eq!(value(r#"{"n":300}"#).canonical(), r#"{"n":300}"#);
    for name in ["$serde_json::private::Number", "$serde_json::private::RawValue"] {
        let text = format!(r#"{{"n":{{"{name}":"300"}}}}"#);
        assert_eq!(value(&text).canonical(), text);
    }
}

#[test]
fn serialised_numbers_keep_every_digit() {
    let body = value(r#"{"b":9007199254740993,"a":[0.1000000000000000055511151231257827,-2.50],"n":null}"#);
    let text = r#"{"b":9007199254740993,"a":[0.1000000000000000055511151231257827,-2.5],"n":null}"#;
    assert_eq!(serde_json::to_string(&body).expect("a tree of JSON has a JSON form"), text);
    assert_eq!(body.to_string(), text, "members stay in the order of arrival");
}

#[test]
fn members_are_ordered_by_utf16_code_units() {
    // By code points U+E000 would stand before U+10000; by UTF-16 units, as RFC 8785 asks, after it.
    let body = value("{\"\u{e000}\":1,\"\u{10000}\":2,\"a\":3,\"\":4,\"A\":5,\"aa\":6}");
    assert_eq!(body.canonical(), "{\"\":4,\"A\":5,\"a\":3,\"aa\":6,\"\u{10000}\":2,\"\u{e000}\":1}");
}

#[test]
fn an_escape_and_its_character_are_one_text() {
    let escaped = value(r#""\u013e \ud83d\ude4f \/ \u0022 \b\f\n\r\t\u001F""#);
    assert_eq!(escaped, value("\"ľ 🙏 / \\\" \\u0008\\u000c\\u000A\\u000d\\u0009\\u001f\""));
    assert_eq!(escaped.canonical(), "\"ľ 🙏 / \\\" \\b\\f\\n\\r\\t\\u001f\"");
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    /// Texts of JSON's own characters reach further into the parser than random bytes do.
    #[test]
    fn no_jumble_of_tokens_makes_the_parser_panic_or_take_what_serde_json_refuses(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "\"a\"", "\"\\u00e9\"", "\\ud83d", "1", "-", "0", ".5", "e3",
                "null", "true", "false", " ", "\n", "\t", "ľ", "🙏", "\"b\":", "\u{feff}", "\u{0}", "nul", "E+",
            ]),
            0..24,
        )
    ) {
        let text = tokens.concat();
        match (parse(text.as_bytes()), serde_json::from_str::<serde_json::Value>(&text)) {
            (Ok(ours), Ok(theirs)) => {
                let again: serde_json::Value = serde_json::from_str(&ours.to_string()).expect("our text is JSON");
                let oracle = |value| serde_json_canonicalizer::to_string(value).expect("the oracle takes any JSON");
                prop_assert_eq!(oracle(&again), oracle(&theirs));
            }
            // Numbers beyond a binary float are no numbers to serde_json.
            (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("out of range"), "{text} was taken: {error}"),
            (Err(malformed), Ok(_)) => prop_assert!(
                ["twice", "U+0000", "1000 digits"].iter().any(|reason| malformed.problem.contains(reason)),
                "{text} was refused: {malformed}"
            ),
            (Err(_), Err(_)) => {}
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same(body in any_json()) {
        prop_assert_eq!(&value(&body.to_string()), &body);
        prop_assert_eq!(&value(&serde_json::to_string(&body).expect("a tree of JSON has a JSON form")), &body);
        let canonical = body.canonical();
        prop_assert_eq!(value(&canonical).canonical(), canonical);
    }

    #[test]
    fn structure_strings_and_member_order_are_those_of_rfc_8785(body in any_json()) {
        let general: serde_json::Value = serde_json::from_str(&body.to_string()).expect("our text is JSON");
        let oracle = serde_json_canonicalizer::to_string(&general).expect("the oracle takes any JSON");
        prop_assert_eq!(body.canonical(), oracle);
    }

    #[test]
    fn a_cut_off_body_is_never_taken(body in any_json(), cut in any::<prop::sample::Index>()) {
        let text = Json::Array(vec![body]).to_string();
        prop_assert!(parse(&text.as_bytes()[..cut.index(text.len())]).is_err());
    }

    #[test]
    fn a_shifted_point_is_undone_by_its_exponent(
        whole in "0|[1-9][0-9]{0,20}", fraction in "[0-9]{1,20}", shift in 0usize..30, negative in any::<bool>()
    ) {
        let sign = if negative { "-" } else { "" };
        let plain = value(&format!("{sign}{whole}.{fraction}")).canonical();
        let digits = format!("{whole}{fraction}");
        let significant = digits.trim_start_matches('0');
        let shifted = if significant.is_empty() {
            format!("{sign}0e-{shift}")
        } else {
            format!("{sign}{significant}{}e-{}", "0".repeat(shift), fraction.len() + shift)
        };
        prop_assert_eq!(value(&shifted).canonical(), plain.clone());
        prop_assert!(!plain.contains(['e', 'E', '+']));
        prop_assert!(plain == "0" || !plain.ends_with('0') || !plain.contains('.'));
    }
}
