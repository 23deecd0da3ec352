//! The rules that join several members: customer, product, lines among each other, signs, totals.

use super::{codes, line_with, order_of_lines, order_with, refused, taken};
use order_service::json::Json;

const NONE: [&str; 0] = [];

/// The faults of an order, none when it is taken.
fn faults(text: &str) -> Vec<String> {
    match order_service::order::Order::parse(&super::json(text)) {
        Ok(_) => Vec::new(),
        Err(_) => codes(text),
    }
}

#[test]
fn an_order_names_its_customer_by_id_or_by_data() {
    let order = |who: &str| format!(r#"{{{who}"currency":"EUR","items":[{{"sku":"A","qty":1}}]}}"#);
    assert_eq!(faults(&order("")), ["/customerId Required"]);
    assert_eq!(faults(&order(r#""customerId":null,"#)), ["/customerId Required"]);
    assert_eq!(faults(&order(r#""customerId":5,"#)), ["/customerId WrongType"]);
    for who in [r#""customerId":"c","#, r#""customer":{"guest":true},"#, r#""customerId":"c","customer":{},"#] {
        assert_eq!(faults(&order(who)), NONE, "{who}");
    }
}

#[test]
fn a_product_needs_a_sku_or_a_name_and_other_lines_do_not() {
    assert_eq!(faults(&order_of_lines(r#"{"qty":1}"#)), ["/items/0/sku Required"]);
    assert_eq!(faults(&order_of_lines(r#"{"qty":1,"name":""}"#)), ["/items/0/sku Required"]);
    assert_eq!(faults(&order_of_lines(r#"{"qty":1,"name":"Med"}"#)), NONE);
    for kind in ["shipping", "fee", "discount", "gift_card", "deposit", "rounding"] {
        assert_eq!(faults(&order_of_lines(&format!(r#"{{"qty":1,"kind":"{kind}"}}"#))), NONE, "{kind}");
    }
}

#[test]
fn line_ids_are_unique_and_parents_exist() {
    let lines = |parents: &[(&str, &str)]| {
        let lines: Vec<String> = parents
            .iter()
            .map(|(id, parent)| {
                let parent = if parent.is_empty() { String::new() } else { format!(r#","parentLineId":"{parent}""#) };
                format!(r#"{{"sku":"A","qty":1,"lineId":"{id}"{parent}}}"#)
            })
            .collect();
        faults(&order_of_lines(&lines.join(",")))
    };
    assert_eq!(lines(&[("1", "2"), ("2", "3"), ("3", "")]), NONE);
    assert_eq!(
        lines(&[("1", ""), ("2", ""), ("1", ""), ("1", "")]),
        ["/items/2/lineId NotUnique", "/items/3/lineId NotUnique"]
    );
    assert_eq!(lines(&[("1", "x")]), ["/items/0/parentLineId UnknownLine"]);
    assert_eq!(lines(&[("1", "1")]), ["/items/0/parentLineId CyclicParent"]);
    assert_eq!(lines(&[("1", "2"), ("2", "1"), ("3", "1")]), ["/items/0/parentLineId CyclicParent"]);
    let two_circles = [("0", "1"), ("1", "2"), ("2", "1"), ("3", ""), ("4", "5"), ("5", "6"), ("6", "4")];
    assert_eq!(lines(&two_circles), ["/items/1/parentLineId CyclicParent", "/items/4/parentLineId CyclicParent"]);
    let chain: Vec<(String, String)> = (0..1_000).map(|line| (line.to_string(), (line + 1).to_string())).collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(id, parent)| (id.as_str(), parent.as_str())).collect();
    assert_eq!(lines(&chain), ["/items/999/parentLineId UnknownLine"]);
}

#[test]
fn only_lines_that_lower_an_order_may_be_negative() {
    let line =
        |kind: &str| line_with(&format!(r#""kind":"{kind}","unitPrice":-1,"total":"-1","taxes":[{{"amount":-0.2}}]"#));
    for kind in ["discount", "gift_card", "rounding"] {
        assert_eq!(faults(&line(kind)), NONE, "{kind}");
    }
    for kind in ["product", "shipping", "fee", "deposit"] {
        let expected = ["/items/0/unitPrice TooSmall", "/items/0/total TooSmall", "/items/0/taxes/0/amount TooSmall"];
        assert_eq!(faults(&line(kind)), expected, "{kind}");
    }
    assert_eq!(faults(&line_with(r#""unitPrice":"-0.00""#)), NONE);
    assert_eq!(faults(&line("gift")), ["/items/0/kind NotOneOf"], "an unknown kind says nothing of the sign");
}

#[test]
fn discounts_name_lines_of_the_order() {
    let order = |ids: &str| {
        format!(
            r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1,"lineId":"1"}}],"discounts":[{{"appliesTo":[{ids}]}}]}}"#
        )
    };
    assert_eq!(faults(&order(r#""1""#)), NONE);
    assert_eq!(faults(&order(r#""1","2""#)), ["/discounts/0/appliesTo/1 UnknownLine"]);
    assert_eq!(faults(&order(r#""A""#)), ["/discounts/0/appliesTo/0 UnknownLine"], "a SKU is not a line");
}

#[test]
fn totals_have_at_most_the_digits_of_their_currency() {
    let order = |currency: &str, gross: &str| {
        faults(&format!(
            r#"{{"customerId":"c","currency":"{currency}","items":[{{"sku":"A","qty":1}}],"totals":{{"gross":{gross}}}}}"#
        ))
    };
    for (currency, fits, too_fine) in
        [("JPY", "1.00", "1.5"), ("eur", "1.230", "1.234"), ("KWD", "1.2340", "1.2345"), ("CLF", "1.2345", "1.23456")]
    {
        assert_eq!(order(currency, fits), NONE, "{currency} {fits}");
        assert_eq!(order(currency, too_fine), ["/totals/gross TooManyDigits"], "{currency} {too_fine}");
    }
    assert_eq!(order("???", "1.2345"), ["/currency NotACurrency"], "the digits of an unknown currency are unknown");
}

/// An order in `currency` whose lines have these totals and taxes.
fn with_totals(currency: &str, including_tax: bool, lines: &[(&str, &str)], totals: &str) -> String {
    let lines: Vec<String> = lines
        .iter()
        .map(|(total, tax)| format!(r#"{{"sku":"A","qty":1,"total":"{total}","taxes":[{{"amount":"{tax}"}}]}}"#))
        .collect();
    format!(
        r#"{{"customerId":"c","currency":"{currency}","pricesIncludeTax":{including_tax},"items":[{}],"totals":{totals}}}"#,
        lines.join(",")
    )
}

#[test]
fn totals_agree_with_the_lines_within_one_minor_unit_a_line() {
    let lines = [("10.00", "2.30"), ("5.00", "1.15")];
    let eur = |including_tax: bool, totals: &str| faults(&with_totals("EUR", including_tax, &lines, totals));
    for (including_tax, totals, expected) in [
        (false, r#"{"net":"15","tax":"3.45","gross":"18.45"}"#, &NONE[..]),
        (false, r#"{"net":"15.02","tax":"3.43","gross":"18.45"}"#, &NONE),
        (false, r#"{"net":"15.03"}"#, &["/totals/net TotalsDiffer"]),
        (false, r#"{"net":"14.97"}"#, &["/totals/net TotalsDiffer"]),
        (false, r#"{"tax":"3.48"}"#, &["/totals/tax TotalsDiffer"]),
        (false, r#"{"net":"15","tax":"3.45","gross":"18.48"}"#, &["/totals/gross TotalsDiffer"]),
        (false, r#"{"net":"15","tax":"3.45","gross":"18.5","rounding":"0.05"}"#, &NONE),
        (false, r#"{"net":"15","tax":"3.45","gross":"18.4","rounding":"-0.05"}"#, &NONE),
        (false, r#"{"net":"15","tax":"3.45","gross":"18.5","rounding":"-0.05"}"#, &["/totals/gross TotalsDiffer"]),
        (false, r#"{"gross":"99"}"#, &NONE),
        (false, r#"{"net":"15","gross":"99"}"#, &NONE),
        (true, r#"{"gross":"15.00"}"#, &NONE),
        (true, r#"{"gross":"14.98"}"#, &NONE),
        (true, r#"{"gross":"15.03"}"#, &["/totals/gross TotalsDiffer"]),
        (true, r#"{"gross":"15.10","rounding":"0.10"}"#, &NONE),
        (true, r#"{"net":"11.55","tax":"3.45","gross":"15.00"}"#, &NONE),
        (true, r#"{"gross":"18.45"}"#, &["/totals/gross TotalsDiffer"]),
    ] {
        assert_eq!(eur(including_tax, totals), expected, "{including_tax} {totals}");
    }
}

#[test]
fn the_tolerance_is_that_of_the_currency() {
    let order = |currency: &str, gross: &str| {
        faults(&with_totals(currency, true, &[("100", "9")], &format!(r#"{{"gross":"{gross}"}}"#)))
    };
    assert_eq!(order("JPY", "101"), NONE);
    assert_eq!(order("JPY", "102"), ["/totals/gross TotalsDiffer"]);
    assert_eq!(order("KWD", "100.001"), NONE);
    assert_eq!(order("KWD", "100.002"), ["/totals/gross TotalsDiffer"]);
}

#[test]
fn the_senders_total_is_kept_and_never_recomputed() {
    for total in ["12.35", "12.34"] {
        let order = taken(&format!(
            r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1000,"priceBaseQty":100,"unitPrice":"1.2345",
                "total":"{total}"}}],"totals":{{"net":"{total}"}}}}"#
        ));
        let totals = order.document().get("totals").expect("they were sent");
        assert_eq!(totals.text("net"), Some(total));
        assert_eq!(
            order.lines().next().map(order_service::order::Line::total),
            Some(order_service::money::exact(total))
        );
    }
    let order = |net: &str| {
        format!(
            r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1,"total":"12.345"}}],"totals":{{"net":"{net}"}}}}"#
        )
    };
    taken(&order("12.35"));
    taken(&order("12.34"));
    assert_eq!(refused(&order("12.36"))[0].code, "TotalsDiffer");
}

#[test]
fn totals_are_compared_only_where_every_line_has_a_total() {
    let totals = r#""totals":{"net":"99","tax":"99","gross":"1"}"#;
    assert_eq!(faults(&order_with(totals)), NONE, "no line has a total");
    let one_of_two = format!(
        r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1,"total":1}},{{"sku":"A","qty":1}}],{totals}}}"#
    );
    assert_eq!(faults(&one_of_two), NONE);
    let broken = one_of_two.replace("\"total\":1", "\"total\":\"x\"");
    assert_eq!(faults(&broken), ["/items/0/total NotADecimal"]);
}

#[test]
fn a_line_without_taxes_has_none_and_a_tax_without_an_amount_is_unknown() {
    let order = |taxes: &str| {
        faults(&format!(
            r#"{{"customerId":"c","currency":"EUR","items":[{{"sku":"A","qty":1,"total":10{taxes}}}],"totals":{{"tax":"2.30"}}}}"#
        ))
    };
    assert_eq!(order(""), ["/totals/tax TotalsDiffer"]);
    assert_eq!(order(r#","taxes":[]"#), ["/totals/tax TotalsDiffer"]);
    assert_eq!(order(r#","taxes":[{"rate":23}]"#), NONE);
    assert_eq!(order(r#","taxes":[{"rate":20,"amount":2},{"rate":3,"amount":"0.3"}]"#), NONE);
}

#[test]
fn a_thousand_lines_of_the_largest_amounts_add_up_exactly() {
    let lines = vec![("999999999999999.999999", "0"); 1_000];
    assert_eq!(faults(&with_totals("EUR", true, &lines, r#"{"gross":"0"}"#)), ["/totals/gross TotalsDiffer"]);
    let small = vec![("0.1", "0"); 1_000];
    let body = with_totals("EUR", true, &small, r#"{"gross":"100.00"}"#);
    assert_eq!(
        taken(&body).document().get("totals").and_then(|totals| totals.get("gross")),
        Some(&Json::Text("100".into()))
    );
}
