-- Undoes the first schema, in the reverse order of its foreign keys.

DROP TABLE outbox;
DROP TABLE order_lines;
DROP TABLE orders;
DROP TABLE operations;
DROP TABLE claims;
DROP TABLE api_keys;
DROP TABLE clients;
DROP TABLE tenants;
