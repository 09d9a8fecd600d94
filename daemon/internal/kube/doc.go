// Package kube reads the two things the daemon wants of the Kubernetes API in its
// ordinary modes: the server's version (is it reachable?) and its own Node.
//
// It is a client-go REST client with a scheme of core/v1 alone: the typed clientset
// would link every API group and cost memory on every node. There is no client-side
// rate limit (as in the original) and no cache: two reads a minute need neither. Every
// call has a time limit of its own and ends with its context; nothing is retried here.
package kube
