// Package pods joins what Kubernetes and the daemons report about pods: which ones have an
// address, and why the others have none. Commands and screens share its columns. It is pure.
package pods
