// Package kubeconfig finds the API server as kubectl does: by its flags, its files, or the
// account of a pod. It connects to nothing and runs no program; what it returns may do so, and
// ends requests that take longer than --request-timeout.
package kubeconfig
