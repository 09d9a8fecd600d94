# The image of the init container; the content is that of `make images`:
#   make build reference && docker build -f deploy/images/aws-vpc-cni-init.Dockerfile -t cnictl/aws-vpc-cni-init:dev .
FROM scratch
WORKDIR /init
COPY LICENSE ./
COPY --chmod=0755 bin/reference/ ./
# Ours stands before the reference plugin of its name.
COPY --chmod=0755 bin/reference/portmap ./portmap.reference
COPY --chmod=0755 bin/portmap bin/aws-vpc-cni-init deploy/images/aws-cni-support.sh ./
ENTRYPOINT ["/init/aws-vpc-cni-init"]
