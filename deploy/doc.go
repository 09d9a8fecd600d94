// Package deploy embeds what a cluster is given: the CustomResourceDefinitions, the
// roles, the IAM policies, the DaemonSet, the one that uninstalls and the metrics helper's
// Deployment. The files are the product, to be applied by kubectl or taken over by other
// tooling; the package exists so that tests grant exactly what the files grant, and nothing
// else imports it. images/ is for who builds with Docker; testenv/cmd/mkimage packs the same
// images without.
//
// The tests of this package hold the files to the code: the environment of the
// manifests to the table of daemon/config, the IAM actions to the calls of the daemon's
// EC2 client. testenv/kubeapi installs the definitions and roles in a real API server.
package deploy
