// Package chart holds the JSON schemas of values: that of the chart aws-vpc-cni, and what is
// known of that of the managed add-on's configurationValues. Beside the two Helm charts lie
// their tests. They run helm as `make $PWD/.cache/tools/helm` builds it, against a real
// kube-apiserver where the cluster matters. testdata/upstream.yaml is upstream's published
// manifest.
package chart
