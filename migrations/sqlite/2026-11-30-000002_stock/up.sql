-- What is on hand, what of it is reserved and until when, and the payments of orders. The rules are those of the first schema.

-- One row for each SKU. Quantities here and below are whole millionths, so that a database compares and adds them exactly.
CREATE TABLE stock (
    tenant_id  TEXT NOT NULL,
    sku        TEXT NOT NULL,
    on_hand    BIGINT NOT NULL CHECK (on_hand >= 0),
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, sku)
);

CREATE TABLE reservations (
    tenant_id      TEXT NOT NULL,
    reservation_id TEXT NOT NULL,
    client_id      TEXT NOT NULL,
    operation_id   TEXT NOT NULL,
    order_id       TEXT,
    expires_at     TIMESTAMP,
    released_at    TIMESTAMP,
    created_at     TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, reservation_id),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, order_id)
);

CREATE INDEX reservations_by_order ON reservations (tenant_id, order_id) WHERE order_id IS NOT NULL;

-- held_until decides alone whether a line holds its quantity: until that moment, the end of the year 9999 when the reservation
-- does not expire, and not at all (NULL) once it was released. An expired line needs nobody to free it.
CREATE TABLE reservation_lines (
    tenant_id      TEXT NOT NULL,
    reservation_id TEXT NOT NULL,
    line_no        INTEGER NOT NULL,
    sku            TEXT NOT NULL,
    qty            BIGINT NOT NULL CHECK (qty > 0),
    held_until     TIMESTAMP,
    PRIMARY KEY (tenant_id, reservation_id, line_no),
    FOREIGN KEY (tenant_id, reservation_id) REFERENCES reservations (tenant_id, reservation_id),
    FOREIGN KEY (tenant_id, sku) REFERENCES stock (tenant_id, sku)
);

-- Finds what is reserved of a SKU, and passes by what has expired or was released, however much of it there is.
CREATE INDEX reservation_lines_held ON reservation_lines (tenant_id, sku, held_until) WHERE held_until IS NOT NULL;

CREATE TABLE payments (
    tenant_id    TEXT NOT NULL,
    payment_id   TEXT NOT NULL,
    order_id     TEXT NOT NULL,
    client_id    TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    reference    TEXT,
    document     TEXT NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, payment_id),
    -- The permanent guard of a payment that has a reference: it outlives every key.
    UNIQUE (tenant_id, order_id, reference),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, order_id)
);
