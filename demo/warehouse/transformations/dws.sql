CREATE MATERIALIZED VIEW dws.revenue COMMENT 'revenue by hour and category' AS
SELECT date_trunc('HOUR', at) AS hour, category, sum(amount) AS revenue, count(*) AS orders
FROM dwd.order_lines
GROUP BY 1, category;
