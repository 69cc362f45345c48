-- Each order with what is known of its customer and its product.
CREATE MATERIALIZED VIEW dwd.order_lines COMMENT 'orders with customers and products' AS
SELECT o.id, o.at, o.amount, c.city, p.category
FROM ods.orders o
LEFT JOIN ods.customers c ON o.customer = c.id
LEFT JOIN ods.products p ON o.product = p.id;
