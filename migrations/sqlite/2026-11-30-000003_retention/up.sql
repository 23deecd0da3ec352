-- What the cleaner searches by: the end of the replay window where a body is still kept, and the end of the key memory.
-- Partial, so that neither index holds an operation that is not final, nor a body that is dropped.

CREATE INDEX operations_by_replay_until ON operations (tenant_id, replay_until)
    WHERE reply_body IS NOT NULL AND replay_until IS NOT NULL;
CREATE INDEX operations_by_remember_until ON operations (tenant_id, remember_until) WHERE remember_until IS NOT NULL;
