-- Undoes stock, reservations and payments, in the reverse order of their foreign keys.

DROP TABLE payments;
DROP TABLE reservation_lines;
DROP TABLE reservations;
DROP TABLE stock;
