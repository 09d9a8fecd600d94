// Package client reads the introspection documents of one node, over TCP or a Unix socket.
//
// The node may run anything: our daemon, upstream's, or another program. Every answer is
// bounded in time and size, redirects are not followed, no proxy is used, and each failure
// is an *Error that says what happened and what to do.
//
// The client keeps the last body of each document that came with an entity tag and sends
// conditional requests for it. It must not retry, cache anything else, or choose nodes:
// that is the fleet reader's job. Only [Client.Follow] repeats requests: it reads events
// for as long as its caller wants.
package client
