FROM python:3.11-slim

RUN useradd --uid 10001 --create-home metastore \
    && install --directory --owner metastore --group metastore /data /warehouse

WORKDIR /src
# Dependencies first: they change less often than the code.
COPY requirements/build.lock requirements/image.lock requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/build.lock \
    && pip install --no-cache-dir --require-hashes --no-build-isolation --no-deps -r requirements/image.lock
COPY pyproject.toml README.md ./
COPY lake lake
COPY metastore metastore
COPY eventbus eventbus
COPY spark_extension spark_extension
RUN pip install --no-cache-dir --no-build-isolation --no-deps ./lake .

USER metastore
WORKDIR /home/metastore
ENV METASTORE_HOST=0.0.0.0 \
    METASTORE_DATA_DIR=/data \
    METASTORE_LOG_FORMAT=json
VOLUME ["/data"]
EXPOSE 9083
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 CMD ["metastore", "status"]
ENTRYPOINT ["metastore"]
CMD ["serve"]
