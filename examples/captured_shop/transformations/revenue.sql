CREATE MATERIALIZED VIEW revenue COMMENT 'revenue by city' AS
SELECT c.city, sum(o.amount) AS amount, count(*) AS orders
FROM orders o LEFT JOIN customers c ON o.customer = c.id GROUP BY c.city;
