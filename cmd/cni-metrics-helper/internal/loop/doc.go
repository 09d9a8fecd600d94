// Package loop is the life of the helper: it polls the nodes at every interval, queues
// the figures, sends the queue after every second poll and once more at the end.
//
// Three goroutines belong to Run: the polls, the sending, which may be slow without
// holding up polls, and the server for Prometheus. All end with Run.
package loop
