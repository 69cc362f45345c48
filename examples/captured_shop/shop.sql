-- The source of this example: a shop's database, and what it publishes.
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL, city text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount numeric(10,2), at timestamptz);
CREATE PUBLICATION lake FOR TABLE customers, orders;
INSERT INTO customers VALUES (1, 'Ada', 'Oslo'), (2, 'Bo', 'Rome');
INSERT INTO orders VALUES (10, 1, 20.00, now()), (11, 2, 5.50, now());
