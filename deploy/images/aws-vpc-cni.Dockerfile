# The image of the container aws-node, from built programs; the content is that of
# `make images`, which needs no Docker:
#   make images && docker build -f deploy/images/aws-vpc-cni.Dockerfile -t cnictl/aws-vpc-cni:dev .
FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates iptables nftables \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY LICENSE daemon/install/10-aws.conflist dist/eni-max-pods.txt ./
COPY --chmod=0755 bin/aws-cni bin/aws-cni-grpc bin/aws-k8s-agent bin/aws-vpc-cni bin/egress-cni bin/grpc-health-probe ./
COPY --chmod=0755 bin/cnictl /usr/bin/cnictl
ENTRYPOINT ["/app/aws-vpc-cni"]
