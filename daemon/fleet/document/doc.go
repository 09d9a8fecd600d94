// Package document holds the documents that cnictl prints and that its screens and the doctor
// export: what cnictl computes from the answers of nodes and of Kubernetes. They are plain structs
// with JSON tags, in lowerCamelCase. Within one apiVersion, fields are only added. Times are in
// RFC 3339, and the names of durations include their unit. Each kind has a JSON Schema (schema/),
// generated from the types and the comments of their members.
//
// No daemon serves them: the answers of nodes are in daemon/api/introspect, and parts of those
// appear in these documents unchanged.
//
// Marshal writes them: unknown values are null, never an empty string or a zero time, and times
// are in whole seconds. The types of introspect are also what daemons serve through
// encoding/json, where an empty string means unknown; that is the only difference between the two
// forms. The tag `null` marks exceptions:
//
//   - null:"never" on a string: it is always known, and an empty one is a value. The same holds
//     for strings in lists and maps, and for those behind pointers.
//   - null:"zero" on a number: 0 means unknown.
//
// The package is pure.
package document
