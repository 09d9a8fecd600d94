// Package notice turns causes into Kubernetes events, and limits their number.
//
// It is pure: the adapter daemon/internal/kube sends the events. Reasons are stable, since
// people filter and alert by them: one for each code of daemon/api/cause, and upstream's
// where it has one.
package notice
