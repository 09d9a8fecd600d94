// Package uninstall removes from a node what the daemon, the plugins and their image left
// on it: rules, routes and links, the CNI configuration and binaries, sockets and state.
//
// daemon/hostnet/rules decides which kernel objects are ours, daemon/internal/hostnet reads
// and removes them; this package handles the files, the order and the output. It may be
// repeated, also after an interrupted run: each run looks for what exists and keeps no
// state.
package uninstall
