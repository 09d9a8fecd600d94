// Package jsonschema generates the JSON Schemas (draft 2020-12) of the daemon's and cnictl's
// documents from their types and the comments on their members, and validates documents.
package jsonschema
