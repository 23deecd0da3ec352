-- Who may ask, the claims and results of their commands, the orders, and the messages that wait for the ERP.
--
-- The rules (docs/decisions/0003-schema-rules.md): tenant_id leads every primary key, unique constraint and foreign key, except
-- in api_keys; identities are made by the program; every time that decides something is read from the database's clock; UTC.
-- Keys are compared byte by byte (COLLATE "C"), so that an upgrade of the system's collations cannot break a unique index.

CREATE TABLE tenants (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC'),
    PRIMARY KEY (tenant_id)
);

CREATE TABLE clients (
    tenant_id  TEXT COLLATE "C" NOT NULL,
    client_id  TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC'),
    PRIMARY KEY (tenant_id, client_id),
    FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
);

-- Looked up by hash before anybody knows the tenant: the one table whose key does not begin with tenant_id.
CREATE TABLE api_keys (
    key_hash   TEXT COLLATE "C" NOT NULL,
    key_id     TEXT COLLATE "C" NOT NULL,
    tenant_id  TEXT COLLATE "C" NOT NULL,
    client_id  TEXT COLLATE "C" NOT NULL,
    scopes     TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC'),
    revoked_at TIMESTAMP,
    PRIMARY KEY (key_hash),
    FOREIGN KEY (tenant_id, client_id) REFERENCES clients (tenant_id, client_id)
);

-- One row for each idempotency key that was won. Never updated; it outlives the recorded answer as the mark of a spent key.
CREATE TABLE claims (
    tenant_id       TEXT COLLATE "C" NOT NULL,
    client_id       TEXT COLLATE "C" NOT NULL,
    command         TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    fingerprint     TEXT NOT NULL,
    operation_id    TEXT COLLATE "C" NOT NULL,
    created_at      TIMESTAMP NOT NULL DEFAULT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC'),
    PRIMARY KEY (tenant_id, client_id, command, idempotency_key)
);

-- The result of a claimed command: its recorded answer and its visible state.
CREATE TABLE operations (
    tenant_id          TEXT COLLATE "C" NOT NULL,
    operation_id       TEXT COLLATE "C" NOT NULL,
    client_id          TEXT COLLATE "C" NOT NULL,
    command            TEXT COLLATE "C" NOT NULL,
    idempotency_key    TEXT COLLATE "C" NOT NULL,
    status             TEXT NOT NULL,
    error              TEXT,
    order_id           TEXT COLLATE "C",
    resource           TEXT,
    reply_status       INTEGER NOT NULL,
    reply_content_type TEXT NOT NULL,
    reply_location     TEXT,
    reply_body         TEXT,
    member_digests     TEXT,
    trace_id           TEXT NOT NULL,
    created_at         TIMESTAMP NOT NULL,
    updated_at         TIMESTAMP NOT NULL,
    completed_at       TIMESTAMP,
    replay_until       TIMESTAMP,
    remember_until     TIMESTAMP,
    PRIMARY KEY (tenant_id, operation_id)
);

CREATE INDEX operations_by_time ON operations (tenant_id, created_at, operation_id);
CREATE INDEX operations_by_order ON operations (tenant_id, order_id, created_at) WHERE order_id IS NOT NULL;

CREATE TABLE orders (
    tenant_id             TEXT COLLATE "C" NOT NULL,
    order_id              TEXT COLLATE "C" NOT NULL,
    client_id             TEXT COLLATE "C" NOT NULL,
    operation_id          TEXT COLLATE "C" NOT NULL,
    channel               TEXT COLLATE "C" NOT NULL,
    external_order_id     TEXT COLLATE "C",
    customer_id           TEXT COLLATE "C",
    currency              TEXT NOT NULL,
    status                TEXT NOT NULL,
    reference             TEXT NOT NULL,
    erp_reference         TEXT,
    paid_amount           TEXT NOT NULL,
    document              TEXT NOT NULL,
    version               BIGINT NOT NULL,
    created_at            TIMESTAMP NOT NULL,
    updated_at            TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, order_id),
    -- The permanent guard of a shop order: it outlives every key.
    UNIQUE (tenant_id, channel, external_order_id)
);

CREATE INDEX orders_by_time ON orders (tenant_id, created_at, order_id);
CREATE INDEX orders_by_customer ON orders (tenant_id, customer_id, created_at) WHERE customer_id IS NOT NULL;

CREATE TABLE order_lines (
    tenant_id TEXT COLLATE "C" NOT NULL,
    order_id  TEXT COLLATE "C" NOT NULL,
    line_no   INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    sku       TEXT,
    qty       TEXT NOT NULL,
    document  TEXT NOT NULL,
    PRIMARY KEY (tenant_id, order_id, line_no),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, order_id)
);

-- Messages to the ERP, written in the transaction of the command that caused them. Their order matters only within an order.
CREATE TABLE outbox (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    message_id   TEXT COLLATE "C" NOT NULL,
    operation_id TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    order_id     TEXT COLLATE "C" NOT NULL,
    position     BIGINT NOT NULL,
    state        TEXT NOT NULL,
    payload      TEXT NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, message_id),
    UNIQUE (tenant_id, operation_id, kind)
);

CREATE INDEX outbox_by_order ON outbox (tenant_id, order_id, position);
