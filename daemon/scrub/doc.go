// Package scrub removes from texts what must not leave the node: container ids and
// credentials. It is pure. The daemon's own texts contain neither; other programs' may,
// such as EC2 responses that repeat the request.
package scrub
