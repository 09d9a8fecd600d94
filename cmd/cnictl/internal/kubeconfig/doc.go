// Package kubeconfig finds the API server as kubectl does: by its flags, its files, or a
// pod's service account. It connects to nothing and runs no program, but clients made from
// its result may. They abort requests that take longer than --request-timeout.
package kubeconfig
