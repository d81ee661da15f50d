# docker build -t edgefl . && docker run --rm -v "$PWD/runs:/home/edgefl/runs" edgefl run quickstart
FROM python:3.13-slim
ENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu PIP_NO_CACHE_DIR=1
COPY . /src
RUN pip install "/src[frames,parquet,plot,timeline]" && rm -r /src && useradd --create-home edgefl
USER edgefl
WORKDIR /home/edgefl
ENTRYPOINT ["edgefl"]
