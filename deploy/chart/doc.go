// Package chart holds two JSON schemas: of the values of the chart aws-vpc-cni, and of the
// managed add-on's configurationValues, as far as it is documented. Beside the two Helm charts lie
// their tests. They run helm as `make $PWD/.cache/tools/helm` builds it, against a real
// kube-apiserver where the cluster matters. testdata/upstream.yaml is upstream's published
// manifest.
package chart
