package chart

import (
	_ "embed"
	"encoding/csv"
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
	rows, err := csv.NewReader(strings.NewReader(accounts)).ReadAll()
	if err != nil {
		panic("registry-accounts.csv: " + err.Error())
	}
	out := map[string]Registry{}
	for _, row := range rows[1:] { // below the header
		out[row[0]] = Registry{Account: row[1], Domain: row[2]}
	}
	return out
})
