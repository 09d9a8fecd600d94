// Package client reads the introspection documents of one node, over TCP or a Unix
// socket.
//
// The node may be anything: ours, upstream, another program. Every answer is bounded
// in time and size, redirects are not followed, no proxy is used, and each failure
// is an *Error that says what happened and what to do.
//
// It keeps the last body of a document that came with an entity tag and asks for
// it conditionally. It must not retry, cache beyond that, or choose nodes: that is
// the fleet reader's. [Client.Follow] alone asks again and again: it reads events
// for as long as its caller wants.
package client
