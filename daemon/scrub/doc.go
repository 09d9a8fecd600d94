// Package scrub takes out of texts what must not leave the node with them: container
// ids and credentials. It is pure. What the daemon writes itself has none; others'
// texts may, as EC2's answers do that repeat the request.
package scrub
