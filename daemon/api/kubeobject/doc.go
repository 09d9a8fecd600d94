// Package kubeobject decodes what is used of Kubernetes objects, for readers of whole
// clusters: the API's own types are many times as large, and link a library of it.
//
// A member that is missing or cannot be read is not known; it is never an error, so that
// one odd object does not hide all others.
package kubeobject
