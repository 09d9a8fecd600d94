// Package deploy embeds the manifests: CustomResourceDefinitions, roles, IAM policies, the
// CNI, the uninstaller and the metrics helper. The files are the product, to be used with
// kubectl, kustomize (kustomization.yaml) or other tools; the package exists so that tests
// grant exactly what the files grant, and nothing else imports it. chart/ has the Helm
// charts; aws-node.yaml and cni-metrics-helper.yaml are what they render. images/ lists
// the container images, which tools/release packs.
//
// The tests of this package compare the files with the code: the manifests' environment
// variables with the table of daemon/config, the IAM actions with the calls of the
// daemon's EC2 client. testenv/kube/kubeapi installs the CRDs and roles in a real API
// server.
package deploy

//go:generate ./manifests.sh
//go:generate go test -run ^TestChart_ -count=1 . -update
//go:generate go test -run ^TestIAM_Documents$ -count=1 . -update
