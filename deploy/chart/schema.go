package chart

import _ "embed"

var (
	//go:embed aws-vpc-cni/values.schema.json
	values string

	// AWS publishes one schema per version of the add-on. This file has the properties
	// documented for v1.15.1 to v1.19.2, in the same form.
	//go:embed addon.schema.json
	addon string
)

// Values is the schema of the values of the chart aws-vpc-cni.
func Values() []byte { return []byte(values) }

// Addon is the schema of the managed add-on's configurationValues.
func Addon() []byte { return []byte(addon) }
