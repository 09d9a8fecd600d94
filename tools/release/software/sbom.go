package software

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Subject is what a bill of materials describes.
type Subject struct {
	Kind          string // container or application
	Name, Version string
	License       string // SPDX expression
	Time          time.Time
}

// SBOM returns the bill of materials as CycloneDX JSON. The same inventory gives the same
// bytes.
func (i *Inventory) SBOM(s Subject) ([]byte, error) {
	bom := cdx.NewBOM()
	root := cdx.Component{BOMRef: s.Name, Type: cdx.ComponentType(s.Kind), Name: s.Name, Version: s.Version, Licenses: expression(s.License)}
	bom.Metadata = &cdx.Metadata{Timestamp: s.Time.UTC().Format(time.RFC3339), Component: &root}
	var components []cdx.Component
	var edges []cdx.Dependency
	var top []string
	for _, p := range i.Programs {
		ref := "program:" + p.Name
		components = append(components, cdx.Component{
			BOMRef: ref, Type: cdx.ComponentTypeApplication, Name: p.Name, Version: s.Version, Description: p.Command,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.SHA256}},
		})
		var refs []string
		for _, key := range p.Modules {
			refs = append(refs, i.Modules[key].purl())
		}
		edges = append(edges, cdx.Dependency{Ref: ref, Dependencies: &refs})
		top = append(top, ref)
	}
	for _, m := range i.Sorted() {
		components = append(components, cdx.Component{
			BOMRef: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: m.purl(), Licenses: expression(m.License),
		})
	}
	for _, p := range i.Packages {
		components = append(components, cdx.Component{BOMRef: p.purl(), Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: p.purl()})
		top = append(top, p.purl())
	}
	edges = append([]cdx.Dependency{{Ref: s.Name, Dependencies: &top}}, edges...)
	bom.Components, bom.Dependencies = &components, &edges
	var out bytes.Buffer
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// purl returns the package URL by which scanners know a module.
func (m *Module) purl() string {
	version := m.Version
	if m.Path == "std" {
		version = strings.TrimPrefix(version, "go")
	}
	return "pkg:golang/" + m.Path + "@" + version
}

func (p Package) purl() string {
	return fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", p.Name, url.QueryEscape(p.Version), p.Arch)
}

func expression(spdx string) *cdx.Licenses {
	if spdx == "" {
		return nil
	}
	return &cdx.Licenses{{Expression: spdx}}
}
