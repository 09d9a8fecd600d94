// Package notice turns causes into Kubernetes events, and bounds how many there are.
//
// It is pure: the adapter daemon/internal/kube sends what comes out of here. Reasons
// are stable, since people filter and alert by them: one for each code of
// daemon/api/cause, and those of upstream where it has one.
package notice
