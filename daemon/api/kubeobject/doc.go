// Package kubeobject decodes the parts of Kubernetes objects that readers of whole clusters
// use: the API's own types are many times larger, and link a large library.
//
// A missing or unreadable member counts as unknown and is never an error, so that one odd
// object does not hide all others.
package kubeobject
