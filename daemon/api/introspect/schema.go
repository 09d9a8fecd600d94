package introspect

import (
	"embed"
	"encoding/json"
	"slices"
)

//go:embed schema/*.json
var schemaFiles embed.FS

// SchemaList answers /v1/schemas: the kinds of our documents with a JSON Schema (draft 2020-12),
// each under /v1/schemas/<kind>.
type SchemaList struct {
	APIVersion string      `json:"apiVersion"` // version of the document
	Kind       string      `json:"kind"`       // SchemaList
	Items      []SchemaRef `json:"items"`      // sorted by kind
}

// SchemaRef names one schema.
type SchemaRef struct {
	Kind string `json:"kind"` // kind of the documents it describes
	Path string `json:"path"` // path it is served at
}

// schemaKinds lists the kinds with a schema, by name.
var schemaKinds = []string{
	KindFault, KindConfig, KindEvents, KindFailures, KindLogs, KindPlan, KindPod, KindSubnetHistory, KindSummary, KindSchemas,
}

// Schemas lists the schemas.
func Schemas() SchemaList {
	list := SchemaList{APIVersion: APIVersion, Kind: KindSchemas}
	for _, kind := range schemaKinds {
		list.Items = append(list.Items, SchemaRef{Kind: kind, Path: PathSchemas + "/" + kind})
	}
	return list
}

// Schema returns the JSON Schema of a kind of document.
func Schema(kind string) (json.RawMessage, bool) {
	if !slices.Contains(schemaKinds, kind) {
		return nil, false
	}
	b, err := schemaFiles.ReadFile("schema/" + kind + ".json")
	return b, err == nil
}
