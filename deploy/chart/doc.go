// Package chart has no code: beside the two Helm charts lie their tests. They run helm as
// `make .cache/tools/helm` builds it, against a real kube-apiserver where the cluster
// matters. testdata/upstream.yaml is upstream's published manifest.
package chart
