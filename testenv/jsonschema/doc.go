// Package jsonschema makes the JSON Schemas (draft 2020-12) of the documents of the daemon and
// of cnictl from their types and the comments on their members, and validates documents.
package jsonschema
