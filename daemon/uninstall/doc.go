// Package uninstall takes from a node what the daemon, the plugins and their image left
// on it: rules, routes and links, the CNI configuration and binaries, sockets and state.
//
// What is ours is decided in daemon/hostnet/rules, what the kernel has is read and
// removed by daemon/internal/hostnet; here are the files, the order and the words. It
// may be repeated, also after a run that was interrupted: it looks for what is there
// each time and remembers nothing.
package uninstall
