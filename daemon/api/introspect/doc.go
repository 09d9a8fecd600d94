// Package introspect defines the documents that a node's introspection server returns:
// plain structs with JSON tags, shared by the daemon, the one-node client, the fleet reader
// and the terminal. What cnictl builds from them is in daemon/fleet/document.
//
// Two families live here and must not be mixed:
//
//   - Upstream's documents (v1.go): byte-compatible with amazon-vpc-cni-k8s
//     v1.23, with its key order and spelling. They never gain a member; additions
//     go under a new path.
//   - Ours (summary.go, config.go, plan.go, event.go, pod.go, logs.go, fault.go):
//     lowerCamelCase, additive within one apiVersion, times RFC 3339, durations with
//     the unit in the name, and null for unknown values, never 0. An unknown string
//     is empty in a daemon's answer and null where cnictl prints it; the members' tags
//     mark exceptions. They have a JSON Schema (schema/), generated from the types and
//     the comments of their members.
//
// Decode reads a /v1/enis answer of any release into the normalised form (node.go). It is
// pure, bounded and safe on hostile input: it returns an error or a consistent value, never
// both.
//
// The package holds no domain type of the daemon and does no I/O.
package introspect
