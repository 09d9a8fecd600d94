# The image of the init container; the content is that of `make images`:
#   make build reference && docker build -f deploy/images/aws-vpc-cni-init.Dockerfile -t cnictl/aws-vpc-cni-init:dev .
FROM scratch
WORKDIR /init
COPY LICENSE ./
COPY --chmod=0755 bin/reference/ bin/aws-vpc-cni-init ./
ENTRYPOINT ["/init/aws-vpc-cni-init"]
