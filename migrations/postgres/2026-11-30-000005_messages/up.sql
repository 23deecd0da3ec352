-- The mails to customers, as clients ask for them. What a mail says and to whom is in its row of outbox alone, and goes with it.
-- The rules are those of the first schema.

-- message_id is the one of outbox. status: processing, unresolved (a person has to look), sent, failed. The last two are final.
CREATE TABLE messages (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    message_id   TEXT COLLATE "C" NOT NULL,
    order_id     TEXT COLLATE "C" NOT NULL,
    client_id    TEXT COLLATE "C" NOT NULL,
    operation_id TEXT COLLATE "C" NOT NULL,
    template     TEXT NOT NULL,
    locale       TEXT NOT NULL,
    status       TEXT NOT NULL,
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, message_id),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, order_id)
);
