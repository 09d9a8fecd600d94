// Package chart holds two JSON schemas: one for the values of the chart aws-vpc-cni, one
// for the managed add-on's configurationValues, as far as they are documented; and the table
// of AWS's registries. The tests
// of the two Helm charts are next to them. They run helm as `make $PWD/.cache/tools/helm`
// builds it, against a real kube-apiserver where the cluster matters.
// testdata/upstream.yaml is upstream's published manifest.
package chart
