# One image runs every part: the command chooses which.
FROM python:3.11-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY requirements.txt requirements-production.txt constraints.txt ./
# GGML_NATIVE=OFF: the image may run on other machines than the one that builds it.
ARG CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON"
RUN python -m venv /opt/venv \
    && CMAKE_ARGS="${CMAKE_ARGS}" /opt/venv/bin/pip install --no-cache-dir \
       -r requirements-production.txt -c constraints.txt

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --create-home llamero
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY manage.py ./
COPY platform ./platform
COPY inference ./inference
COPY models_registry ./models_registry
COPY templates ./templates
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/app:/app/platform \
    PYTHONUNBUFFERED=1 \
    LLAMERO_HOME=/data \
    LLAMERO_STATIC_ROOT=/app/static
RUN LLAMERO_HOME=/tmp/build LLAMERO_SECRET_KEY=unused-while-building \
    python manage.py collectstatic --noinput --verbosity 0 && rm -rf /tmp/build
USER llamero
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "serve", "--host", "0.0.0.0"]
