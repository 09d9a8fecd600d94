// Package doctor holds these pages for the doctor, which knows causes and remedies from them alone. Package
// doctor/causes/catalogue reads them, and says how they are written.
package doctor

import "embed"

// Pages has a page for each group of causes: ip.md.
//
//go:embed *.md
var Pages embed.FS
