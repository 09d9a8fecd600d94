package chart

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed aws-vpc-cni/registry-accounts.csv
var accounts string

// Registry is the ECR registry from which AWS publishes images in a region.
type Registry struct{ Account, Domain string }

// Registries returns AWS's registries by region, from the table with which the chart makes the
// names of images.
var Registries = sync.OnceValue(func() map[string]Registry {
	out := map[string]Registry{}
	for line := range strings.Lines(accounts) {
		if row := strings.Split(strings.TrimSpace(line), ","); len(row) == 3 && row[0] != "region" {
			out[row[0]] = Registry{Account: row[1], Domain: row[2]}
		}
	}
	return out
})
