-- Orders with what is known of their customers; those of unknown customers, too.
CREATE MATERIALIZED VIEW orders (
    CONSTRAINT priced EXPECT (amount >= 0) ON VIOLATION DROP ROW
)
  COMMENT 'orders with their customers'
  TBLPROPERTIES ('bucket' = '2')
AS SELECT o.id, o.at, o.amount, c.name, coalesce(c.city, 'unknown') AS city
FROM ods.orders o
LEFT JOIN customers c ON o.customer = c.id;

-- The latest row of each customer, from a log of changes.
CREATE STREAMING TABLE customers;

CREATE FLOW customers_from_log AS AUTO CDC INTO customers
FROM STREAM(ods.customers_log)
KEYS (id)
APPLY AS DELETE WHEN op = 'delete'
SEQUENCE BY lsn
COLUMNS * EXCEPT (op, lsn);
