-- How far each message on its way out is, every attempt to deliver one, the connections, and what the duty desk decided. The rules
-- are those of the first schema.

-- state: waiting, leased, parked (a person has to look), delivered, refused, abandoned, withdrawn. The last four are final.
-- channel: erp, or mail. Neither waits for the other.
ALTER TABLE outbox ADD COLUMN channel TEXT NOT NULL DEFAULT 'erp';
-- While a message waits, next_attempt_at is its next attempt; while it is leased, the end of the lease.
ALTER TABLE outbox ADD COLUMN next_attempt_at TIMESTAMP NOT NULL DEFAULT '1970-01-01 00:00:00';
ALTER TABLE outbox ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
-- The attempts that count against the budget, and the end of the first of them. The connection's own faults do not count.
ALTER TABLE outbox ADD COLUMN spent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN spent_since TIMESTAMP;
-- The fencing token: who does not hold it any more cannot settle.
ALTER TABLE outbox ADD COLUMN lease_token TEXT;
-- Since when the ERP may have the message without our knowing; NULL: it surely has not.
ALTER TABLE outbox ADD COLUMN unknown_since TIMESTAMP;
-- 1: the duty desk wants it sent again although nobody can look whether it arrived.
ALTER TABLE outbox ADD COLUMN resend_asked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN last_outcome TEXT;
ALTER TABLE outbox ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';

CREATE INDEX outbox_by_due ON outbox (tenant_id, channel, state, next_attempt_at);

-- One row for each attempt. outcome is NULL while it runs.
CREATE TABLE attempts (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    message_id   TEXT COLLATE "C" NOT NULL,
    number       INTEGER NOT NULL,
    started_at   TIMESTAMP NOT NULL,
    ended_at     TIMESTAMP,
    outcome      TEXT,
    detail       TEXT,
    trace_id     TEXT NOT NULL,
    PRIMARY KEY (tenant_id, message_id, number),
    -- A forgotten message takes its attempts along.
    FOREIGN KEY (tenant_id, message_id) REFERENCES outbox (tenant_id, message_id) ON DELETE CASCADE
);

-- The way out of each channel of a tenant. The secret itself is in no table: secret_name is the variable that holds it.
CREATE TABLE connections (
    tenant_id    TEXT COLLATE "C" NOT NULL,
    channel      TEXT COLLATE "C" NOT NULL,
    kind         TEXT NOT NULL,
    url          TEXT,
    secret_name  TEXT,
    options      TEXT NOT NULL,
    -- Failures of the connection in a row, whatever the message; the next success makes it 0.
    failures     INTEGER NOT NULL DEFAULT 0,
    paused_until TIMESTAMP,
    pause_reason TEXT,
    created_at   TIMESTAMP NOT NULL,
    updated_at   TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, channel),
    FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
);

-- Who decided what about an unresolved operation, when and why. operation_id is the one of the decision itself.
CREATE TABLE interventions (
    tenant_id           TEXT COLLATE "C" NOT NULL,
    operation_id        TEXT COLLATE "C" NOT NULL,
    target_operation_id TEXT COLLATE "C" NOT NULL,
    client_id           TEXT COLLATE "C" NOT NULL,
    decision            TEXT NOT NULL,
    erp_reference       TEXT,
    reason              TEXT,
    trace_id            TEXT NOT NULL,
    created_at          TIMESTAMP NOT NULL,
    PRIMARY KEY (tenant_id, operation_id)
);

CREATE INDEX interventions_by_target ON interventions (tenant_id, target_operation_id);
