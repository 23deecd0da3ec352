-- Takes the cleaner's indexes away. It still does its work then, by reading whole tables.

DROP INDEX operations_by_remember_until;
DROP INDEX operations_by_replay_until;
