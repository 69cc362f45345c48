"""What is reported: revenue by hour and city, and the best cities of each hour."""

from pyspark import pipelines as dp


@dp.materialized_view(name="dws.revenue")
def revenue():
    return spark.sql("""
        SELECT date_trunc('HOUR', at) AS hour, city, sum(amount) AS revenue, count(*) AS orders
        FROM dwd.orders
        GROUP BY 1, city
    """)


@dp.materialized_view(name="ads.best_cities")
def best_cities():
    return spark.sql("""
        SELECT hour, city, revenue
        FROM (SELECT *, rank() OVER (PARTITION BY hour ORDER BY revenue DESC) AS place FROM dws.revenue) AS ranked
        WHERE place <= 2
    """)
