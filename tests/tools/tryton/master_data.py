"""Fills a new Tryton with what a company that sells online has, and writes the key and the ids that callers need.

Arguments: the configuration of trytond, the file to write. The database is named `erp`.
"""
import json
import os
import secrets
import sys
from decimal import Decimal

from proteus import Model, Wizard, config

CONFIGURATION, ANSWER = sys.argv[1:]
DATABASE = "erp"
COUNTRIES = {"AT": "Austria", "DE": "Germany", "FR": "France", "NL": "Netherlands"}
# Rates in percent, as shops write them.
TAX_RATES = ("19", "7")
# "Accrued Taxes" of the chart of accounts that Tryton brings.
TAX_ACCOUNT = "2.2.3"
# SKU, name, type, list price without tax, tax rate.
PRODUCTS = (
    ("TEE-BLK-M", "T-shirt black M", "goods", "19.90", "19"),
    ("MUG-01", "Mug", "goods", "9.50", "19"),
    ("SHIPPING", "Shipping", "service", "4.90", "19"),
)
GROUPS = (
    ("sale", "group_sale"),
    ("party", "group_party_admin"),
    ("product", "group_product_admin"),
    ("account", "group_account"),
)

connection = config.set_trytond(DATABASE, config_file=CONFIGURATION)
new = Model.get


def find(model, *domain):
    return new(model).find(list(domain), limit=1)[0]


def by_xml_id(model, xml_id):
    return new(model)(new("ir.model.data").get_id(xml_id, connection.context))


def make_company():
    euro = new("currency.currency")(name="Euro", code="EUR", numeric_code="978", symbol="€", rounding=Decimal("0.01"))
    euro.rates.new(rate=Decimal(1))
    euro.save()
    for code, name in COUNTRIES.items():
        new("country.country")(name=name, code=code).save()
    party = new("party.party")(name="Demo Shop GmbH")
    party.save()
    wizard = Wizard("company.company.config")
    wizard.execute("company")
    wizard.form.party, wizard.form.currency, wizard.form.timezone = party, euro, "Europe/Berlin"
    wizard.execute("add")
    connection._context = new("res.user").get_preferences(True, {})
    payment_term = new("account.invoice.payment_term")(name="Immediate")
    payment_term.lines.new(type="remainder")
    payment_term.save()
    return find("company.company"), euro


def account(company, kind):
    return find("account.account", (f"type.{kind}", "=", True), ("company", "=", company.id), ("closed", "!=", True))


def make_accounts(company):
    wizard = Wizard("account.create_chart")
    wizard.execute("account")
    wizard.form.account_template = by_xml_id("account.account.template", "account.account_template_root_en")
    wizard.form.company = company
    wizard.execute("create_account")
    wizard.form.account_receivable = account(company, "receivable")
    wizard.form.account_payable = account(company, "payable")
    wizard.form.category_account_expense = account(company, "expense")
    wizard.form.category_account_revenue = account(company, "revenue")
    wizard.execute("create_properties")


def make_taxes():
    taxes = {}
    for rate in TAX_RATES:
        name = f"VAT {rate}%"
        tax = new("account.tax")(name=name, description=name, type="percentage", rate=Decimal(rate) / 100)
        tax.invoice_account = tax.credit_note_account = find("account.account", ("code", "=", TAX_ACCOUNT))
        tax.save()
        taxes[rate] = tax
    return taxes


def make_products(company, taxes):
    piece = find("product.uom", ("symbol", "=", "u"))
    categories = {}
    for rate, tax in taxes.items():
        category = new("product.category")(name=f"Goods {rate}%", accounting=True)
        category.account_expense = account(company, "expense")
        category.account_revenue = account(company, "revenue")
        category.customer_taxes.append(new("account.tax")(tax.id))
        category.save()
        categories[rate] = category
    for sku, name, kind, price, rate in PRODUCTS:
        template = new("product.template")(name=name, code=sku, default_uom=piece, type=kind, salable=True)
        template.list_price = Decimal(price)
        template.account_category = categories[rate]
        template.save()


def make_web_shop(company, euro):
    guest = new("party.party")(name="Web guest")
    guest.save()
    shop = new("web.shop")(name="order-service", company=company, currency=euro, guest_party=guest)
    shop.warehouses.append(find("stock.location", ("type", "=", "warehouse")))
    shop.save()
    return shop


def make_api_key(company):
    user = new("res.user")(name="Order service", login="order-service", password=secrets.token_urlsafe(24))
    for module, group in GROUPS:
        user.groups.append(by_xml_id("res.group", f"{module}.{group}"))
    user.companies.append(new("company.company")(company.id))
    user.company = new("company.company")(company.id)
    user.save()
    application = new("res.user.application")(user=user, application="rest", state="validated")
    application.save()
    return application.key


company, euro = make_company()
make_accounts(company)
taxes = make_taxes()
make_products(company, taxes)
shop = make_web_shop(company, euro)
answer = {
    "bearer": make_api_key(company),
    "company": company.id,
    "web_shop": shop.id,
    "taxes": {rate: tax.id for rate, tax in taxes.items()},
}
with open(os.open(ANSWER, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
    json.dump(answer, file, indent=1)
