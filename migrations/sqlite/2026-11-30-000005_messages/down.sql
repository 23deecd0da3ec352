-- Undoes up.sql.

DROP TABLE messages;
