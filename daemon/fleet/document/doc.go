// Package document holds the documents that cnictl prints, and that its screens and the
// doctor export: what it makes of the answers of nodes, of Kubernetes and of its own
// computation. They are plain structs with JSON tags, lowerCamelCase, additive within one
// apiVersion, with times in RFC 3339 and the unit of durations in their names. Each kind has
// a JSON Schema (schema/), made from the types and the comments of their members.
//
// No daemon serves them: what a node answers is in daemon/api/introspect, and parts of it
// stand in these documents as they came.
//
// Marshal writes them: what is not known is null, never an empty string or a zero time, and
// times are in whole seconds. The types of introspect are also what daemons answer, where an
// empty string means unknown and encoding/json writes it: the two forms differ in nothing
// else. A member says by its tag `null` when it is not as the others are:
//
//   - null:"never" of a string: it is always known, and an empty one is a value. So are
//     strings in lists and in maps, and those that pointers lead to.
//   - null:"zero" of a number: 0 means unknown.
//
// The package is pure.
package document
