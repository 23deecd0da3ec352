-- Undoes up.sql.

DROP TABLE interventions;
DROP TABLE connections;
DROP TABLE attempts;
DROP INDEX outbox_by_due;
ALTER TABLE outbox DROP COLUMN channel;
ALTER TABLE outbox DROP COLUMN next_attempt_at;
ALTER TABLE outbox DROP COLUMN attempts;
ALTER TABLE outbox DROP COLUMN spent;
ALTER TABLE outbox DROP COLUMN spent_since;
ALTER TABLE outbox DROP COLUMN lease_token;
ALTER TABLE outbox DROP COLUMN unknown_since;
ALTER TABLE outbox DROP COLUMN resend_asked;
ALTER TABLE outbox DROP COLUMN last_outcome;
ALTER TABLE outbox DROP COLUMN trace_id;
