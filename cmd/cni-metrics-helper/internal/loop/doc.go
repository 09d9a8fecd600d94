// Package loop is the main loop of the helper: it polls the nodes at every interval, queues
// the figures, and sends the queue after every second poll and once more on exit.
//
// Run has three goroutines: the poller; the sender, which may be slow without delaying polls;
// and the server for Prometheus. All end with Run.
package loop
